/** Decides whether a notification may be sent to an address. */
import {
  isLinkLocal,
  isLoopback,
  isNamedBy,
  isNoHost,
  plainAddress,
  withoutTranslation,
} from '#kit/net/rules/direct-host.ts'

export interface OutgoingRules {
  /** Addresses and CIDR ranges that are allowed although they are special (`[notify] networks`). */
  readonly networks: readonly string[]
  /** The addresses of this host's interfaces. */
  readonly own: readonly string[]
  /** The ports on which our own services listen. */
  readonly ownPorts: readonly number[]
}

/** Clouds have their metadata, with passwords, at these addresses besides the link-local ones. */
const METADATA: ReadonlySet<string> = new Set([
  '100.100.100.200',
  '168.63.129.16',
  'fd00:ec2::254',
  'fd20:ce::254',
])

/**
 * Returns why nothing may be sent to an address that a name server gave, in words; null: it may. What
 * a setting names is allowed, but never our own services.
 */
export function refuseOutgoing(
  { address, port }: { readonly address: string; readonly port: number },
  { networks, own, ownPorts }: OutgoingRules,
): string | null {
  const plain = withoutTranslation(plainAddress(address))
  if (isNoHost(plain)) return `${plain} is no address of a host`
  const isHere = isLoopback(plain) || own.map(plainAddress).includes(plain)
  if (isHere && ownPorts.includes(port)) return `${plain} is this server itself`
  if (isNamedBy(plain, networks)) return null
  if (isHere) return `${plain} is this host (${ALLOW})`
  if (isLinkLocal(plain)) return `${plain} is a link-local address (${ALLOW})`
  return METADATA.has(plain) ? `${plain} is a metadata service (${ALLOW})` : null
}

const ALLOW = 'list it in [notify] networks to allow it'
