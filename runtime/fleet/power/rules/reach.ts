/** Decides whether an address may be contacted for a machine's power: only within `[power] networks`. */
import {
  isLoopback,
  isNamedBy,
  isNoHost,
  plainAddress,
} from '../../../kit/net/rules/special-address.ts'
import { lasting, type PowerTrouble } from './power.ts'

export interface ReachRules {
  /** Addresses and CIDR ranges. */
  readonly networks: readonly string[]
  /** The addresses of this host's interfaces. */
  readonly own: readonly string[]
  /** The ports on which our own services listen. */
  readonly ownPorts: readonly number[]
}

/**
 * Returns why an address, as a name server gave it, may not be contacted; null: it may. A loopback
 * address may be one of an emulator on this host, so it is only refused where no network of loopback
 * addresses names it, or where our own service listens.
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

/**
 * Returns why the credential of a label may not be sent to an address, which a name server may have
 * given; null: it may.
 */
export function refuseForLabel(
  address: string,
  { label, addresses }: { readonly label: string | null; readonly addresses: readonly string[] },
): PowerTrouble | null {
  const plain = plainAddress(address)
  if (isNamedBy(plain, addresses)) return null
  const seen = `the password of the label ${label} may not be sent to ${plain}`
  return lasting('address', seen, describeListing(label ?? ''))
}

/** Says what an administrator does where the password of a label is sent nowhere, or not to an address. */
export const describeListing = (label: string): string =>
  `Make sure which BMCs have it, and list all of their addresses or ranges: PUT /power/credentials/labels/${encodeURIComponent(label)} {"addresses": ["10.20.0.0/24"]}.`

/** Where a BMC listens for IPMI. */
const IPMI_PORT = 623

/** Whether an address that was not set yet would be contacted over IPMI, as far as `networks` decides that. */
export const mayContact = (address: string | null, networks: readonly string[]): boolean =>
  address !== null &&
  refuseAddress({ address, port: IPMI_PORT }, { networks, own: [], ownPorts: [] }) === null

const CORRECT = 'Correct the address of its BMC.'
const SET_NETWORKS = 'List the networks of the BMCs in [power] networks.'
