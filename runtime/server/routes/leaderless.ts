/** What a machine boots while no server may decide: it waits in line, and in the end its disk, if it had no order. */
import { Fault } from '../../kit/foundation/fault.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import { renderBoot } from '../../fleet/boot/rules/boot-script.ts'
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

export interface LeaderlessDependencies extends Pick<Site, 'elapsed' | 'otherServers'> {
  /**
   * Returns the script with which a machine boots its disk, as far as is known here; null: it may have
   * an order, or its disk may be half written.
   */
  findDiskScript(mac: Mac, contact: Contact): string | null
}

/**
 * Creates what renders such a machine's script. One that may have an order, or whose disk may be half
 * written, goes on waiting, for as long as it takes; one that nobody knows leaves after its rounds.
 */
export function createLeaderless({
  elapsed = () => performance.now(),
  otherServers,
  findDiskScript,
}: LeaderlessDependencies) {
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
    const script = countRound(mac) > ROUNDS ? findDiskScript(mac, contact) : null
    if (script !== null) return script
    const saying = 'no server leads this fleet at the moment'
    // The one that leads from now on may be another, and this one be gone by then.
    const others = otherServers?.(contact.baseUrl) ?? []
    return renderWait(mac, contact, { rule: 'no-leader', saying, others })
  }
}

interface Wait {
  readonly rule: string
  /** Why, for the screen. */
  readonly saying: string
  /** The servers that are asked where this one gives no answer. */
  readonly others: readonly string[]
}

/** The script of a machine that asks again in a moment. */
export function renderWait(
  mac: Mac,
  { baseUrl: base, loader = null }: Contact,
  { rule, saying, others }: Wait,
): string {
  return renderBoot(
    { kind: 'to-wait', base, others, seconds: WAIT_SECONDS, saying },
    { mac, mode: 'unknown', rule, reason: saying },
    loader,
  )
}
