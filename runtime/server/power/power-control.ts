/** Controls the power of this line's machines: what speaks against it, the act, the record of it. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Standing, UNCHANGED } from '#fleet/access/accounts.ts'
import type { PowerBook, PowerService } from '#fleet/power/power-service.ts'
import {
  lasting,
  renderPowerFailure,
  type PowerDone,
  type PowerFailure,
  type PowerTrouble,
} from '#fleet/power/rules/power.ts'
import type { PowerChange } from '#fleet/power/rules/bmc.ts'
import { renderError } from '#kit/foundation/fault.ts'
import type { Result } from '#kit/foundation/result.ts'
import { createQueue } from '#kit/host/queue.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { By, RecordEvents } from '#kit/web/answers/caller.ts'
import type { BootEachRequest } from '#server/routes/site.ts'
import {
  chooseBoot,
  renderPowerEvent,
  refuseLater,
  refusePower,
  renderPowerView,
  type PowerView,
  type PowerBody,
} from './rules/power-request.ts'

interface PowerControlDependencies extends Pick<
  EachDependencies,
  'power' | 'labelsOf' | 'recordAll' | 'standing' | 'now'
> {
  readonly book: PowerBook
  findRun(mac: string): string | null
  /** Milliseconds; for requests without a pause. */
  stagger(): number
}

export type PowerControl = ReturnType<typeof createPowerControl>

const bootBody = (isRestart: boolean): PowerBody => ({
  action: isRestart ? 'restart' : 'on',
  boot: 'network',
  url: null,
  even_while_writing: false,
})

/** Failures that the response explains and nobody must attend to. */
const IS_ANSWER: ReadonlySet<PowerFailure['kind']> = new Set(['not-now', 'unsupported'])

const UNBOUNDED = {
  /** Scoped views refuse here; null: allowed. */
  refuseOutside: (_mac: Mac): string | null => null,
}

export function createPowerControl(given: PowerControlDependencies) {
  const { power, book, labelsOf, recordAll } = given
  const runs = { ...createWritingList(given), ...UNBOUNDED, listSecretLabels: book.listLabels }

  function refuse(mac: Mac, asked: PowerBody): string | null {
    if (book.find(mac) === null) return `no power control is set up for ${mac}`
    return refusePower(mac, asked, { writing: runs.listWriting(mac) })
  }

  /** A run may have begun during the wait for a BMC; only `known` runs were agreed to be cut. */
  function refuseCut(mac: Mac, asked: PowerBody, known: ReadonlySet<string>): PowerTrouble | null {
    const refusal = refuse(mac, asked) ?? refuseLater(runs.listLater(mac, known))
    return refusal === null ? null : lasting('not-now', 'it is still in progress', refusal)
  }

  const { follow, settle } = createFollower()

  async function act(
    mac: Mac,
    asked: PowerBody,
    by: By,
    { isTrial = false, known = runs.listRuns([mac]) }: ActOptions = {},
  ): Promise<Result<PowerDone, PowerFailure>> {
    const entry = book.find(mac)
    const { action } = asked
    const boot = entry === null ? null : chooseBoot(entry.bmc, asked)
    const request = { action, boot, isTrial, refuseOff: () => refuseCut(mac, asked, known) }
    const done = await power.act(mac, labelsOf(mac), request)
    const isQuiet = isTrial && (done.ok || IS_ANSWER.has(done.refusal.kind))
    const event = entry === null || isQuiet ? null : renderPowerEvent(mac, asked, entry, done)
    if (event !== null) await recordAll([event], { subject_id: mac, ...by })
    return done
  }

  const { actOnEach, ...each } = createActOnEach({ ...given, ...runs, refuse, act })

  return {
    book,
    ...runs,
    ...each,
    refuse,
    /** Null: it can be tried. */
    async refuseBoot(mac: Mac, isRestart: boolean, by: By): Promise<string | null> {
      const refusal = refuse(mac, bootBody(isRestart))
      if (refusal !== null) return refusal
      const tried = await act(mac, bootBody(isRestart), by, { isTrial: true })
      return tried.ok ? null : renderPowerFailure(tried.refusal)
    },
    /** Once. Resolves to why it failed; null: it worked. */
    async boot(mac: Mac, isRestart: boolean, by: By): Promise<string | null> {
      const refusal = refuse(mac, bootBody(isRestart))
      if (refusal !== null) return refusal
      const done = await follow(act(mac, bootBody(isRestart), by))
      return done.ok ? null : renderPowerFailure(done.refusal)
    },
    act: (mac: Mac, asked: PowerBody, by: By) => follow(act(mac, asked, by)),
    /** Nothing is kept or recorded. */
    test: (mac: Mac, change: PowerChange) => follow(power.test(mac, labelsOf(mac), change)),
    /** Resolves once all work has ended and is on record: soon, where the service has ended. */
    settle,
    actOnEach: (macs: readonly Mac[], asked: PowerBody, on: EachRequest) =>
      follow(actOnEach(macs, asked, on)),
    /** From memory, without asking a BMC. */
    foresee: (mac: Mac, isRestart: boolean): string | null => refuse(mac, bootBody(isRestart)),
    bootEach: (macs: readonly Mac[], { isRestart, pause, ...on }: BoundBootRequest) =>
      follow(actOnEach(macs, bootBody(isRestart), { ...on, pause: pause ?? given.stagger() })),
    view: (mac: Mac) => viewPower(given, mac),
    /** Its credentials, too. */
    async forgetMachine(mac: Mac): Promise<void> {
      await book.remove(mac)
      power.forget(mac)
    },
    /** After a change of how the machine is reached. */
    forget: power.forget,
  }
}

function createWritingList({ book, findRun }: Pick<PowerControlDependencies, 'book' | 'findRun'>) {
  /** Machines that lose power with `mac` while their disk is written. */
  const listWriting = (mac: Mac): readonly string[] =>
    [mac, ...book.listSharing(mac)].filter((each) => findRun(each) !== null)
  return {
    listWriting,
    /** Runs that a cut would end now. */
    listRuns: (macs: readonly Mac[]): ReadonlySet<string> =>
      new Set(macs.flatMap((mac) => listWriting(mac).flatMap((each) => findRun(each) ?? []))),
    /** Only runs that were not `known` when the cut was requested. */
    listLater: (mac: Mac, known: ReadonlySet<string>): readonly string[] =>
      listWriting(mac).filter((each) => !known.has(findRun(each) ?? '')),
  }
}

/** From memory; null: no way to it is set. */
function viewPower(
  { power, book, labelsOf, now }: PowerControlDependencies,
  mac: Mac,
): PowerView | null {
  const entry = book.find(mac)
  if (entry === null) return null
  const shown = {
    entry,
    found: book.findCredential(entry, labelsOf(mac)),
    seen: power.lastSeen(mac),
    isBusy: power.isBusy(mac),
    sharing: book.listSharing(mac),
  }
  return renderPowerView(shown, now().getTime())
}

function createFollower() {
  const underway = new Set<Promise<unknown>>()
  return {
    async follow<T>(work: Promise<T>): Promise<T> {
      underway.add(work)
      try {
        return await work
      } finally {
        underway.delete(work)
      }
    },
    async settle(): Promise<void> {
      await Promise.allSettled(underway)
    },
  }
}

interface ActOptions {
  /** Reads the state only, and says whether the rest could be tried. */
  readonly isTrial?: boolean
  /** Runs under way when it was requested. */
  readonly known?: ReadonlySet<string>
}

const MAX_NAMED = 20

const AT_ONCE = 8

interface EachDependencies {
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
type EachRequest = Omit<BootEachRequest, 'isRestart' | 'pause'> & {
  readonly pause: number
  /** Absent: those under way now. */
  readonly known?: ReadonlySet<string>
  /** Why the requester may not act on a machine by now; null or absent: they may. */
  forbid?(mac: Mac): string | null
}

type BoundBootRequest = BootEachRequest & Pick<EachRequest, 'forbid'>

export interface PowerUnderway {
  readonly id: string
  readonly macs: readonly Mac[]
  readonly action: PowerBody['action']
  readonly by: By
  readonly left: ReadonlySet<Mac>
  /** Begins with no more machines. */
  stop(who: string): void
}

/** Acts on one machine after the other, and stops where whoever asked is gone. Records each result, and each machine left out because of what has changed meanwhile. */
function createActOnEach(given: EachDependencies) {
  const { power, recordAll, standing = UNCHANGED, labelsOf, now, refuse, listRuns, act } = given
  const underway = new Map<string, PowerUnderway>()

  async function actNow(
    mac: Mac,
    asked: PowerBody,
    { by, forbid }: Pick<EachRequest, 'by' | 'forbid'>,
    known: ReadonlySet<string>,
  ): Promise<string | null> {
    const isOutside = !standing.canSee(by.actor, labelsOf(mac))
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
    const summary = `${why} before the power of ${named}${more} was controlled`
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

const OUTSIDE = 'The person who started this may not change it.'
const ENDED = 'The server was stopped'
const LEFT = 'The wait was ended'
