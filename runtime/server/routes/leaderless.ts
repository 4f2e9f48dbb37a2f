/** What a machine boots while no server may decide: it waits in line, and in the end its disk, if it had no order. */
import { Fault } from '#kit/foundation/fault.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { renderBoot } from '#fleet/boot/rules/boot-script.ts'
import type { Site } from './site.ts'
import type { Contact } from './transition.ts'

/** Times a machine asks before its last known state is enough to boot its disk. */
const ROUNDS = 6
const WAIT_SECONDS = 10
/** A machine that was not heard of for so long begins anew. */
const FORGET_MS = 300_000
const MAX_MACHINES = 20_000

export const isLeaderless = (error: unknown): boolean =>
  error instanceof Fault && error.code === 'no-leader'

export interface LeaderlessDependencies extends Pick<Site, 'elapsed' | 'otherServers'> {
  /** Null: the machine may have an order or a half-written disk, as far as is known here. */
  findDiskScript(mac: Mac, contact: Contact): string | null
}

/**
 * Waits without end if the disk may be half written or an order open; an unknown machine leaves.
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
    // Another server may lead from now on, and this one may be gone by then.
    const others = otherServers?.(contact.baseUrl) ?? []
    return renderWait(mac, contact, { rule: 'no-leader', saying, others })
  }
}

interface Wait {
  readonly rule: string
  readonly saying: string
  /** Asked when this server gives no answer. */
  readonly others: readonly string[]
}

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
