/** Acts on the power of one machine after the other, and stops where whoever asked is gone. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { UNCHANGED, type Standing } from '../../fleet/access/standing.ts'
import {
  renderPowerFailure,
  type PowerDone,
  type PowerFailure,
} from '../../fleet/power/rules/power.ts'
import { renderError } from '../../kit/foundation/fault.ts'
import type { PowerService } from '../../fleet/power/power-service.ts'
import type { Result } from '../../kit/foundation/result.ts'
import { createQueue } from '../../kit/host/queue.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { By } from '../../kit/web/answers/caller.ts'
import type { RecordEvents } from '../../kit/web/answers/plain-event.ts'
import type { BootEachRequest } from '../routes/site.ts'
import type { PowerBody } from './rules/power-request.ts'

export interface ActOptions {
  /** Reads the state only, and says whether the rest could be tried. */
  readonly isTrial?: boolean
  /** Runs under way when it was requested. */
  readonly known?: ReadonlySet<string>
}

const MAX_NAMED = 20

const AT_ONCE = 8

export interface EachDependencies {
  readonly power: PowerService
  /** Empty for an unknown machine. */
  labelsOf(mac: Mac): readonly string[]
  readonly recordAll: RecordEvents
  /** Whether a requester still has their rights; absent: yes. */
  readonly standing?: Standing
  now(): Date
  refuse(mac: Mac, asked: PowerBody): string | null
  listRuns(macs: readonly Mac[]): ReadonlySet<string>
  act(
    mac: Mac,
    asked: PowerBody,
    by: By,
    options: ActOptions,
  ): Promise<Result<PowerDone, PowerFailure>>
}

/** `pause` in milliseconds. */
export type EachRequest = Omit<BootEachRequest, 'isRestart' | 'pause'> & {
  readonly pause: number
  /** Absent: those under way now. */
  readonly known?: ReadonlySet<string>
  /** Why the requester may not act on a machine by now; null or absent: they may. */
  forbid?(mac: Mac): string | null
}

export type BoundBootRequest = BootEachRequest & Pick<EachRequest, 'forbid'>

export interface PowerUnderway {
  readonly id: string
  readonly macs: readonly Mac[]
  readonly action: PowerBody['action']
  readonly by: By
  readonly left: ReadonlySet<Mac>
  /** Begins with no more machines. */
  stop(who: string): void
}

/** Records each result, and each machine left out because of what has changed meanwhile. */
export function createActOnEach(given: EachDependencies) {
  const { power, recordAll, standing = UNCHANGED, labelsOf, now, refuse, listRuns, act } = given
  const underway = new Map<string, PowerUnderway>()

  async function actNow(
    mac: Mac,
    asked: PowerBody,
    { by, forbid }: Pick<EachRequest, 'by' | 'forbid'>,
    known: ReadonlySet<string>,
  ): Promise<string | null> {
    const isOutside = !standing.sees(by.actor, labelsOf(mac))
    const refusal = isOutside ? OUTSIDE : (forbid?.(mac) ?? refuse(mac, asked))
    const failure = refusal ?? (await act(mac, asked, by, { known }).catch(renderError))
    if (typeof failure === 'object') return failure.ok ? null : renderPowerFailure(failure.refusal)
    const event = { kind: 'machine.power.failed', summary: `${mac}: ${failure}`, details: null }
    await recordAll([event], { subject_id: mac, ...by })
    return failure
  }

  async function recordUnreached(macs: readonly Mac[], why: string, by: By): Promise<void> {
    const named = macs.slice(0, MAX_NAMED).join(', ')
    const more = macs.length > MAX_NAMED ? ` and ${macs.length - MAX_NAMED} more` : ''
    const summary = `${why} before the power of ${named}${more} was asked`
    const event = { kind: 'machine.power.failed', summary, details: { macs: macs.length } }
    await recordAll([event], { subject_id: null, ...by })
  }

  async function actOnEach(
    macs: readonly Mac[],
    asked: PowerBody,
    each: EachRequest,
  ): Promise<void> {
    const { pause, by, onFailure, known = listRuns(macs) } = each
    const began = now().toISOString()
    const own = new AbortController()
    const signal = AbortSignal.any([
      power.signal,
      own.signal,
      ...(each.signal ? [each.signal] : []),
    ])
    const left = new Set(macs)
    const id = randomBytes(6).toString('hex')
    const stop = (who: string) => own.abort(`${who} stopped it`)
    underway.set(id, { id, macs, action: asked.action, by, left, stop })
    const inTurn = createQueue(AT_ONCE)
    const unreached: Mac[] = []
    const tryOne = async (mac: Mac): Promise<void> => {
      await each.awaitReady?.(mac)
      left.delete(mac)
      const gone = standing.refuse(by.actor, 'power', began)
      if (gone !== null) own.abort(gone)
      if (signal.aborted) {
        unreached.push(mac)
        if (own.signal.aborted) onFailure?.(mac, sayEnd())
        return
      }
      const why = await actNow(mac, asked, each, known)
      if (why !== null) onFailure?.(mac, why)
    }
    const sayEnd = () =>
      own.signal.aborted ? String(own.signal.reason) : power.signal.aborted ? ENDED : LEFT
    const acts: Promise<void>[] = []
    for (const [at, mac] of macs.entries()) {
      if (at > 0) await sleep(pause, undefined, { signal }).catch(() => {})
      acts.push(inTurn(() => tryOne(mac)))
    }
    await Promise.allSettled(acts)
    underway.delete(id)
    if (unreached.length > 0) await recordUnreached(unreached, sayEnd(), by)
  }

  /** Oldest first. */
  return { actOnEach, listUnderway: (): readonly PowerUnderway[] => [...underway.values()] }
}

const OUTSIDE = 'It is outside of the scope of who began this.'
const ENDED = 'The server ended'
const LEFT = 'The wait ended'
