/** The DHCP server of a virtual network: it leads machines to a server by the documented recipe. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { planDhcp, renderDhcpRecipes, type FirmwareLoader } from '#fleet/boot/rules/dhcp.ts'
import { LAB_INTERFACE, LAB_PREFIX, type Namespace } from '../http/namespace.ts'
import { collectWords, waitUntil } from '../waiting.ts'

interface DhcpOptions {
  /** The folder of its files. */
  readonly folder: string
  /** The address of the machine server and of the TFTP daemon. */
  readonly server: string
  /** Null: it gives addresses, and says nothing of booting. */
  readonly loader: FirmwareLoader | null
  /** Lines that are added to dnsmasq's configuration. */
  readonly own: readonly string[]
}

/** Needs the package dnsmasq-base. */
export async function startDhcp(
  namespace: Namespace,
  { folder, server, loader, own }: DhcpOptions,
): Promise<void> {
  const recipe = loader === null ? '' : renderRecipe(server, loader)
  const config = join(folder, 'dnsmasq.conf')
  const lines = [
    'port=0',
    `interface=${LAB_INTERFACE}`,
    'bind-interfaces',
    'dhcp-range=192.168.99.50,192.168.99.99,1h',
    `dhcp-leasefile=${join(folder, 'leases')}`,
    'user=root',
    ...own,
  ]
  await writeFile(config, [...lines, recipe, ''].join('\n'))
  const words = ['dnsmasq', '--keep-in-foreground', '--log-facility=-', '-C', config]
  const said = collectWords(namespace.spawn(words))
  await waitUntil(async () => said().includes('DHCP, IP range'), said)
}

function renderRecipe(server: string, loader: FirmwareLoader): string {
  const target = planDhcp(server, LAB_PREFIX, `http://${server}:8080`, loader)
  if (!target.ok) throw new Error(target.refusal)
  return renderDhcpRecipes(target.value).find(({ id }) => id === 'dnsmasq')?.text ?? ''
}
