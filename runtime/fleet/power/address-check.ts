/** Finds the address of a BMC and checks it before a byte is sent to it. */
import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import type { HostPort } from './rules/bmc.ts'
import { passing, type PowerTrouble } from './rules/power.ts'
import { refuseAddress, type ReachRules } from './rules/reach.ts'

/** Finds the address to connect to. The trouble says why nothing may be sent there. */
export type FindAddress = (to: HostPort) => Promise<Result<string, PowerTrouble>>

/** Creates the check. `rules` is asked at each contact, so that a changed setting counts at once. */
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
