/** Controls the power of this line's machines: what speaks against it, the act, the record of it. */
import type { PowerBook } from '../../fleet/power/power-store.ts'
import {
  lasting,
  renderPowerFailure,
  type PowerDone,
  type PowerFailure,
  type PowerTrouble,
} from '../../fleet/power/rules/power.ts'
import type { Result } from '../../kit/foundation/result.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { By } from '../../kit/web/answers/caller.ts'
import {
  createActOnEach,
  type ActOptions,
  type BoundBootRequest,
  type EachDependencies,
  type EachRequest,
} from './power-each.ts'
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

  /** Null: it can be sent. */
  function refuse(mac: Mac, asked: PowerBody): string | null {
    if (book.find(mac) === null) return `no way to the power of ${mac} is set`
    return refusePower(mac, asked, { writing: runs.listWriting(mac) })
  }

  /** A run may have begun during the wait for a BMC; only `known` runs were agreed to be cut. */
  function refuseCut(mac: Mac, asked: PowerBody, known: ReadonlySet<string>): PowerTrouble | null {
    const refusal = refuse(mac, asked) ?? refuseLater(runs.listLater(mac, known))
    return refusal === null ? null : lasting('not-now', 'it is not done by now', refusal)
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
    found: book.findCredential(mac, labelsOf(mac)),
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
