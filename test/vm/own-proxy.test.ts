/** `pnpm start --proxy`: real firmware beside a DHCP server that knows nothing of it asks this server for its script. */
import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { GRUB_FILES, SHIM_FILES } from '#appliance/assets.ts'
import { createDnsmasqHost } from '#test/support/net/dnsmasq-host.ts'
import { startOwnProxy } from '#test/support/net/own-proxy.ts'
import { findBuildObstacle, openIpxe, openSecureBoot } from '#test/support/vm/built-images.ts'
import { FIRMWARE } from '#test/support/vm/ipxe.ts'
import { startQemu } from '#test/support/vm/qemu.ts'
import { SECURE_FIRMWARE } from '#test/support/vm/secure-firmware.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('pnpm start --proxy and real firmware')
const MAC = '52:54:00:12:34:56'
/** Milliseconds, ten times what a free machine needs. */
const PATIENCE_MS = 600_000
/** OVMF tries IPv4 PXE, IPv6 PXE, then HTTP, each for a minute. */
const NOT_BY_PXE = ['IPv4PXESupport', 'IPv6PXESupport'].flatMap((name) => [
  '-fw_cfg',
  `name=opt/org.tianocore/${name},string=no`,
])

/** What the page says of a machine that was started so. */
async function boot(rom: string, firmware: readonly string[]): Promise<string> {
  await using host = await createDnsmasqHost()
  const boots = join(host.folder, 'state/boot')
  await mkdir(boots, { recursive: true })
  const { x86_64: ipxe } = await openIpxe()
  const { shim, grub } = await openSecureBoot()
  for (const [name, from] of Object.entries({
    'ipxe.efi': ipxe,
    [SHIM_FILES.x86_64]: shim,
    [GRUB_FILES.x86_64]: grub,
  }))
    await copyFile(from, join(boots, name))
  const wire = await host.openWire()
  // The port on which GRUB looks.
  await using proxy = await startOwnProxy(host, { port: '8080' })
  await proxy.saw(({ state }) => state === 'answering')
  const card = `virtio-net-pci,netdev=net,mac=${MAC},bootindex=1${rom}`
  const devices = ['-netdev', wire.netdev, '-device', card, '-device', 'virtio-rng-pci']
  await using _ = await startQemu({
    namespace: wire.namespace,
    megabytes: 512,
    args: [...firmware, ...devices],
  })
  let page = ''
  await waitUntil(
    async () => {
      page = await proxy.get('/ui/dhcp')
      return page.includes('asked for its script')
    },
    () => page,
    PATIENCE_MS,
  )
  const seen = JSON.parse(await proxy.get(`/machines/${MAC}`))
  assert.match(seen.last_seen_ip, /^192\.168\.98\.[6-9]\d$/)
  const [, row = ''] = /<td>([^<]*(?:iPXE|UEFI|HTTP Boot).*?)<\/tr>/s.exec(page) ?? []
  return row.replaceAll(/<[^>]*>|\s+/g, ' ')
}

const builds = findBuildObstacle() === null ? test : test.skip

builds('UEFI HTTP Boot with Secure Boot, by the signed chain', async () => {
  const said = await boot(',romfile=', [...SECURE_FIRMWARE, ...NOT_BY_PXE])
  assert.match(said, /HTTP Boot x64 .* got http:\/\/192\.168\.98\.1:8080\/boot\/shimx64\.efi/)
})

builds('UEFI by PXE, which fetches our iPXE first', async () => {
  const said = await boot(',romfile=', FIRMWARE.uefi)
  assert.match(said, /UEFI x64 .*, asked for its script/)
})

builds("a BIOS with iPXE in its card's ROM", async () => {
  const said = await boot('', FIRMWARE.bios)
  assert.match(said, /iPXE, BIOS .* got http:\/\/192\.168\.98\.1:8080\/pxe-bootstrap\.ipxe/)
})

test.run()
