/** Decides whether an address may be contacted for a machine's power: only within `[power] networks`. */
import { isLoopback, isNamedBy, isNoHost, plainAddress } from '#kit/net/rules/direct-host.ts'
import { lasting, type PowerTrouble } from './power.ts'

export interface ReachRules {
  readonly networks: readonly string[]
  readonly own: readonly string[]
  readonly ownPorts: readonly number[]
}

/**
 * Null: it may be contacted. Loopback may be an emulator, so it is refused only if no loopback
 * network allows it, or our own service listens there.
 */
export function refuseAddress(
  { address, port }: { readonly address: string; readonly port: number },
  { networks, own, ownPorts }: ReachRules,
): PowerTrouble | null {
  if (networks.length === 0) return lasting('address', 'no network is allowed', SET_NETWORKS)
  const plain = plainAddress(address)
  if (isNoHost(plain)) return lasting('address', `${plain} is no address of a machine`, CORRECT)
  if (!isNamedBy(plain, networks)) {
    return lasting('address', `${plain} is outside [power] networks`, `${CORRECT} ${SET_NETWORKS}`)
  }
  const isOwn = isLoopback(plain) ? ownPorts.includes(port) : own.map(plainAddress).includes(plain)
  return isOwn ? lasting('address', `${plain} is this server itself`, CORRECT) : null
}

/** Null: the label's credential may be sent. `address` may come from a name server. */
export function refuseForLabel(
  address: string,
  { label, addresses }: { readonly label: string | null; readonly addresses: readonly string[] },
): PowerTrouble | null {
  const plain = plainAddress(address)
  if (isNamedBy(plain, addresses)) return null
  const seen = `the password of the label ${label} may not be sent to ${plain}`
  return lasting('address', seen, describeListing(label ?? ''))
}

/** For a label's password that may be sent nowhere, or not to an address. */
export const describeListing = (label: string): string =>
  `Make sure which BMCs have it, and list all of their addresses or ranges: PUT /power/credentials/labels/${encodeURIComponent(label)} {"addresses": ["10.20.0.0/24"]}.`

const IPMI_PORT = 623

/** As far as `networks` decides, for IPMI at an address not yet saved. */
export const mayContact = (address: string | null, networks: readonly string[]): boolean =>
  address !== null &&
  refuseAddress({ address, port: IPMI_PORT }, { networks, own: [], ownPorts: [] }) === null

const CORRECT = 'Correct the address of its BMC.'
const SET_NETWORKS = 'List the networks of the BMCs in [power] networks.'
