/** What a machine boots while no server may decide: it waits in line, and in the end its disk, if it had no order. */
import { Fault } from '../../kit/foundation/fault.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import { renderBoot, renderExit } from '../../fleet/boot/rules/boot-script.ts'
import type { Site } from './site.ts'
import type { Contact } from './transition.ts'

/** How often a machine asks before what was last known of it is enough to boot its disk. */
const ROUNDS = 6
const WAIT_SECONDS = 10
/** A machine that was not heard of for so long begins anew. */
const FORGET_MS = 300_000
const MAX_MACHINES = 20_000

export const isLeaderless = (error: unknown): boolean =>
  error instanceof Fault && error.code === 'no-leader'

/**
 * Creates what renders such a machine's script. One that may have an order, or whose disk may be half
 * written, goes on waiting, for as long as it takes; one that nobody knows leaves after its rounds.
 */
export function createLeaderless(
  site: Pick<Site, 'elapsed' | 'otherServers'> & {
    readonly machines: Pick<Site['machines'], 'peek'>
    readonly line: Pick<Site['line'], 'decideBoot'>
  },
) {
  const { machines, line, elapsed = () => performance.now() } = site
  const waiting = new Map<Mac, { readonly rounds: number; readonly at: number }>()

  function countRound(mac: Mac): number {
    const now = elapsed()
    const known = waiting.get(mac)
    const rounds = known === undefined || now - known.at > FORGET_MS ? 1 : known.rounds + 1
    // The newest is last, so that the first is the one to forget.
    waiting.delete(mac)
    waiting.set(mac, { rounds, at: now })
    const [oldest] = waiting.keys()
    if (waiting.size > MAX_MACHINES && oldest !== undefined) waiting.delete(oldest)
    return rounds
  }

  return (mac: Mac, contact: Contact): string => {
    const { baseUrl: base, loader = null } = contact
    if (countRound(mac) > ROUNDS) {
      const machine = machines.peek(mac)
      if (machine === null) return renderExit(loader)
      const { boots, script } = line.decideBoot(machine, contact)
      if (boots === 'to-disk') return script
    }
    const saying = 'no server leads this fleet at the moment'
    // The one that leads from now on may be another, and this one be gone by then.
    const others = site.otherServers?.(base) ?? []
    return renderBoot(
      { kind: 'to-wait', base, others, seconds: WAIT_SECONDS, saying },
      { mac, mode: 'unknown', rule: 'no-leader', reason: saying },
      loader,
    )
  }
}
