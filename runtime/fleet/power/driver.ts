/** What every way to a machine's power offers, so that all are used alike; and the check of an address before a byte is sent to it. */
import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import { type Result, accept, refuse } from '../../kit/foundation/result.ts'
import type { HostPort } from './rules/bmc.ts'
import {
  type PowerAbilities,
  type BootOnce,
  type PowerPress,
  type PowerReading,
  type PowerTrouble,
  passing,
} from './rules/power.ts'
import { refuseAddress, type ReachRules } from './rules/reach.ts'

/** What a BMC answers, or why it did not work. */
export type PowerAnswer<T> = Promise<Result<T, PowerTrouble>>

/** One visit at a BMC. It is given back however it ends: sessions of BMCs are few. */
export interface PowerVisit extends AsyncDisposable {
  /** Reads the state; `unknown` where the way cannot tell. */
  readState(): PowerAnswer<PowerReading>
  /** Sends the press. That it was accepted does not say that it was done. */
  press(press: PowerPress): PowerAnswer<null>
  /** Sets what the next boot starts from, and reads it back where that is possible. */
  setBoot(boot: BootOnce): PowerAnswer<null>
}

export interface PowerDriver {
  readonly abilities: PowerAbilities
  /** Opens a visit. The trouble says why there is none. */
  open(signal: AbortSignal): PowerAnswer<PowerVisit>
}

/** Finds the address to connect to. The trouble says why nothing may be sent there. */
export type FindAddress = (to: HostPort) => Promise<Result<string, PowerTrouble>>

/** `rules` is asked at each contact, so that a changed setting counts at once. */
export function createReach(rules: () => Omit<ReachRules, 'own'>): FindAddress {
  return async ({ host, port }) => {
    const found = await lookup(host, { all: true }).catch(() => [])
    if (found.length === 0) return refuse(UNKNOWN)
    const now = { ...rules(), own: listOwn() }
    // Every address that the name has must be allowed: which one is used is the resolver's choice.
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

const listOwn = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address))
