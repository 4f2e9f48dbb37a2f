/** Chooses the address of this host that DHCP servers should name, from the one that the operator uses. */
import { planDhcp, type DhcpTarget, type FirmwareLoader } from './dhcp.ts'
import type { InterfaceAddress } from './pxe-activation.ts'

type HostAddress = Omit<InterfaceAddress, 'device'>

const LOOPBACK = /^(localhost|127\..*|\[::1\])$/
const UNKNOWN_PREFIX = 24

/** The request's address if machines can use it, else this host's first; null: none. */
export function decideDhcpTarget(
  baseUrl: string,
  addresses: readonly HostAddress[],
  loader: FirmwareLoader,
): DhcpTarget | null {
  const url = URL.parse(baseUrl)
  if (url === null) return null
  const chosen = chooseAddress(url, addresses)
  if (chosen === null) return null
  const port = url.port === '' ? '' : `:${url.port}`
  const base = LOOPBACK.test(url.hostname)
    ? `${url.protocol}//${chosen.address}${port}${url.pathname.replace(/\/$/, '')}`
    : baseUrl
  const target = planDhcp(chosen.address, chosen.prefix, base, loader)
  return target.ok ? target.value : null
}

function chooseAddress(
  { hostname }: URL,
  addresses: readonly HostAddress[],
): Pick<HostAddress, 'address' | 'prefix'> | null {
  const usable = addresses.filter(({ family }) => family === 4)
  const own = usable.find(({ address }) => address === hostname)
  const isElsewhere = own === undefined && /^\d+(\.\d+){3}$/.test(hostname)
  // Behind NAT or a proxy: machines see what the operator used.
  if (isElsewhere && !LOOPBACK.test(hostname)) return { address: hostname, prefix: UNKNOWN_PREFIX }
  return own ?? usable[0] ?? null
}
