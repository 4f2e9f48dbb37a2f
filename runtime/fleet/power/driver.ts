/** What every way to a machine's power offers, so that all are used alike; and the check of an address before a byte is sent to it. */
import { lookup } from 'node:dns/promises'
import { listOwnAddresses } from '#kit/host/own-addresses.ts'
import { type Result, accept, refuse } from '#kit/foundation/result.ts'
import type { HostPort } from './rules/bmc.ts'
import {
  type BootOnce,
  passing,
  type PowerAbout,
  type PowerAbilities,
  type PowerPress,
  type PowerReading,
  type PowerTrouble,
  type ReachRules,
  refuseAddress,
} from './rules/power.ts'

export type PowerAnswer<T> = Promise<Result<T, PowerTrouble>>

/** One visit at a BMC. Dispose of it always: BMCs have few sessions. */
export interface PowerVisit extends AsyncDisposable {
  /** `unknown`: this way cannot tell. */
  readState(): PowerAnswer<PowerReading>
  /** Accepted does not mean done. */
  press(press: PowerPress): PowerAnswer<null>
  /** For the next boot; read back if possible. */
  setBoot(boot: BootOnce): PowerAnswer<null>
  /** Absent: it says nothing of itself. */
  describe?(): PowerAnswer<PowerAbout>
}

export interface PowerDriver {
  readonly abilities: PowerAbilities
  open(signal: AbortSignal): PowerAnswer<PowerVisit>
}

export type FindAddress = (to: HostPort) => Promise<Result<string, PowerTrouble>>

/** `rules` is read at each contact, so that a changed setting counts at once. */
export function createReach(rules: () => Omit<ReachRules, 'own'>): FindAddress {
  return async ({ host, port }) => {
    const found = await lookup(host, { all: true }).catch(() => [])
    if (found.length === 0) return refuse(UNKNOWN)
    const now = { ...rules(), own: listOwnAddresses() }
    // Every address of the name must be allowed: the resolver chooses one.
    for (const { address } of found) {
      const trouble = refuseAddress({ address, port }, now)
      if (trouble !== null) return refuse(trouble)
    }
    return accept(found[0]?.address ?? host)
  }
}

const UNKNOWN = passing(
  'unreachable',
  'its host name was not found',
  'Check the address of its BMC and the name server of this host.',
)
