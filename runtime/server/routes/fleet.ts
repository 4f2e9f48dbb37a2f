/** Every change of machines: stored, recorded and announced, regardless of who requested it. */
import { after, type Eventual } from '../../kit/foundation/eventual.ts'
import type { FieldError } from '../../kit/foundation/field-error.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { RecordedOutcome } from '../../fleet/machine/rules/flash-outcome.ts'
import type { MachineBase } from '../../engine/inventory/rules/machine.ts'
import { refuse, type Result } from '../../kit/foundation/result.ts'
import { compareFields } from '../../fleet/state/rules/event-changes.ts'
import type { FindConflict } from './line.ts'
import type { ServerServices } from './server-services.ts'
import type { Metrics } from '../../kit/web/http/metrics.ts'
import type { Transition } from './transition.ts'
import type { Note, NoteAll } from '../../kit/web/answers/event-note.ts'
import type { By } from '../../kit/web/answers/caller.ts'
import { countRun, renderLost } from './run-events.ts'

type Acted<M> =
  | { readonly result: 'done'; readonly machine: M | null }
  | { readonly result: 'refused'; readonly reason: string }
  | { readonly result: 'missing' }

type UpsertRefusal =
  | { readonly why: 'fields'; readonly fields: readonly FieldError[] }
  | { readonly why: 'stale' }

export interface Fleet<M extends MachineBase> {
  /**
   * As `PUT /machines/{mac}`: creates or replaces. `isExpected` sees the record that would be
   * replaced, in the same step.
   */
  upsert(
    mac: Mac,
    body: unknown,
    by: By,
    isExpected?: (before: M | null) => boolean,
  ): Promise<Result<M, UpsertRefusal>>
  /** False when there was none. */
  remove(mac: Mac, by: By): Promise<boolean>
  /**
   * Stores what `decide` makes of a record (null: there is none, or none is made) and puts it on
   * record. `decide` is pure: it is asked again where somebody else changes the record meanwhile.
   * A promise only where something is stored.
   */
  update<T extends Transition<M>>(
    mac: Mac,
    by: By,
    decide: (before: M | null) => T | null,
  ): Eventual<T | null>
  /** One of the line's actions, or `delete`. Nothing is done when `isDryRun`. */
  act(mac: Mac, request: ActionRequest<M>, by: By): Promise<Acted<M>>
  /**
   * Resolves with what became of an order, as soon as the record says it; null when `signal` is
   * aborted before.
   */
  awaitOutcome(mac: Mac, order: string, signal: AbortSignal): Promise<RecordedOutcome | null>
}

interface ActionRequest<M> {
  readonly action: string
  readonly parameters: unknown
  readonly isDryRun?: boolean
  /** Of several machines in one request. */
  readonly findConflict?: FindConflict<M> | undefined
}

interface FleetDependencies<M extends MachineBase> extends Pick<
  ServerServices<M>,
  'line' | 'machines' | 'runs' | 'feed' | 'now' | 'onFlashSlot'
> {
  readonly metrics: Metrics
  readonly noteAll: NoteAll
}

export function createFleet<M extends MachineBase>(site: FleetDependencies<M>): Fleet<M> {
  const { line, machines } = site
  const changes = createChanges()
  const update = createUpdate(site, changes)
  const remove: Fleet<M>['remove'] = (mac, by) => removeMachine(site, changes, mac, by)
  return {
    update,
    remove,
    upsert: (mac, body, by, isExpected = () => true) =>
      upsertMachine(site, changes, mac, by, (before) => {
        if (!isExpected(before)) return refuse({ why: 'stale' })
        const parsed = line.parseUpsert(body, before, { mac, by: signed(site, by) })
        return parsed.ok ? parsed : refuse({ why: 'fields', fields: parsed.refusal })
      }),
    async act(mac, { action, parameters, isDryRun = false, findConflict }, by) {
      if (action === 'delete') {
        const isThere = isDryRun ? machines.peek(mac) !== null : await remove(mac, by)
        return isThere ? { result: 'done', machine: null } : { result: 'missing' }
      }
      const rule = line.actions[action]
      if (rule === undefined) return { result: 'refused', reason: `there is no action ${action}` }
      let reason: string | null = null
      const made = await update(mac, by, (machine) => {
        if (machine === null) return null
        const decided = rule.apply(machine, parameters, signed(site, by))
        reason = decided.ok ? (findConflict?.(decided.value.machine) ?? null) : decided.refusal
        const isDone = decided.ok && reason === null && !isDryRun
        return isDone ? decided.value : { machine, notes: [] }
      })
      if (made === null) return { result: 'missing' }
      return reason === null
        ? { result: 'done', machine: made.machine }
        : { result: 'refused', reason }
    },
    awaitOutcome: (mac, order, signal) => awaitOutcome(site, mac, order, signal),
  }
}

/** The record decides, after each change of it: a restore or a deletion ends the wait, too. */
function awaitOutcome<M extends MachineBase>(
  { line, machines, feed }: Pick<FleetDependencies<M>, 'line' | 'machines' | 'feed'>,
  mac: Mac,
  order: string,
  signal: AbortSignal,
): Promise<RecordedOutcome | null> {
  const { promise, resolve } = Promise.withResolvers<RecordedOutcome | null>()
  const check = () => {
    const machine = machines.peek(mac)
    const outcome = machine === null ? 'deleted' : line.decideOutcome(machine, order)
    if (outcome !== null) resolve(outcome)
  }
  const stop = feed.listen((change) => {
    if (change.topic === 'settings' || (change.topic === 'machine' && change.mac === mac)) check()
  })
  const leave = () => resolve(null)
  signal.addEventListener('abort', leave, { once: true })
  check()
  if (signal.aborted) leave()
  return promise.finally(() => {
    stop()
    signal.removeEventListener('abort', leave)
  })
}

const signed = ({ now }: Pick<ServerServices<MachineBase>, 'now'>, { actor, ip }: By) => ({
  actor,
  ip,
  at: now().toISOString(),
})

/**
 * The record in memory decides, and nothing is stored where nothing changes. What follows in memory
 * follows at once: the next machine, which may share the commit with this one, must find it.
 */
function createUpdate<M extends MachineBase>(
  { machines, feed, noteAll, onFlashSlot }: FleetDependencies<M>,
  changes: Changes,
): Fleet<M>['update'] {
  const note = (mac: Mac, { actor, ip }: By, made: Transition<M> | null): Eventual<void> =>
    made === null || made.notes.length === 0
      ? undefined
      : noteAll(made.notes, { subject_id: mac, actor, ip })

  async function store<T extends Transition<M>>(
    mac: Mac,
    by: By,
    before: M | null,
    first: T,
    settled: (before: M | null) => T | null,
  ): Promise<T | null> {
    let decided: T | null = first
    const isAlone = !changes.has(mac)
    const stored = changes.track(mac, () =>
      machines.update(mac, (found) => {
        if (found !== before) decided = settled(found)
        return decided === null || decided.machine === found ? null : decided.machine
      }),
    )
    // The place that was assigned for a record that could not be stored is free again.
    stored.catch(() => onFlashSlot?.(first.machine, 'released'))
    // Side by side record and events share one wait for the disk. Behind another change of the machine
    // it may be decided anew, so the events wait until it is.
    await Promise.all([stored, isAlone ? note(mac, by, decided) : null])
    feed.announce({ topic: 'machine', mac })
    if (!isAlone) await note(mac, by, decided)
    return decided
  }

  return (mac, by, decide) => {
    const settled: typeof decide = (before) => {
      const made = decide(before)
      if (made?.slot !== undefined) onFlashSlot?.(made.machine, made.slot)
      return made
    }
    const before = machines.peek(mac)
    const decided = settled(before)
    return decided === null || decided.machine === before
      ? after(note(mac, by, decided), () => decided)
      : store(mac, by, before, decided, settled)
  }
}

/** Machines whose records are being changed. */
function createChanges() {
  const counts = new Map<Mac, number>()
  return {
    has: (mac: Mac) => counts.has(mac),
    async track<T>(mac: Mac, change: () => Promise<T>): Promise<T> {
      counts.set(mac, (counts.get(mac) ?? 0) + 1)
      try {
        return await change()
      } finally {
        const left = (counts.get(mac) ?? 1) - 1
        if (left === 0) counts.delete(mac)
        else counts.set(mac, left)
      }
    },
  }
}

type Changes = ReturnType<typeof createChanges>

async function upsertMachine<M extends MachineBase>(
  { machines, line, feed, noteAll }: FleetDependencies<M>,
  changes: Changes,
  mac: Mac,
  by: By,
  replace: (before: M | null) => Result<M, UpsertRefusal>,
): Promise<Result<M, UpsertRefusal>> {
  const made: { answer: Result<M, UpsertRefusal>; before: M | null } = {
    answer: refuse({ why: 'stale' }),
    before: null,
  }
  await changes.track(mac, () =>
    machines.update(mac, (before) => {
      made.before = before
      made.answer = replace(before)
      return made.answer.ok ? made.answer.value : null
    }),
  )
  const { answer, before } = made
  if (!answer.ok) return answer
  feed.announce({ topic: 'machine', mac })
  const { details } = line.describe(answer.value)
  const changed = before === null ? {} : compareFields(line.describe(before).details, details)
  const kind = before === null ? 'machine.created' : 'machine.upserted'
  const isSame = Object.keys(changed).length === 0
  const verb = isSame ? 'was saved without a change' : 'was changed'
  const summary = `${mac} ${before === null ? 'was created' : verb}`
  const recorded = before === null ? details : { ...details, changes: changed }
  await noteAll([{ kind, summary, details: recorded }], { subject_id: mac, ...by })
  return answer
}

async function removeMachine<M extends MachineBase>(
  { machines, line, runs, feed, metrics, noteAll }: FleetDependencies<M>,
  changes: Changes,
  mac: Mac,
  by: By,
): Promise<boolean> {
  const before = machines.peek(mac)
  if (!(await changes.track(mac, () => machines.remove(mac)))) return false
  const lost = await runs.giveUp(mac, 'Its machine was deleted.')
  feed.announce({ topic: 'machine', mac })
  const details = before === null ? null : line.describe(before).details
  const note: Note = { kind: 'machine.deleted', summary: `${mac} was deleted`, details }
  const notes = lost === null ? [note] : [note, renderLost(lost)]
  await noteAll(notes, { subject_id: mac, ...by })
  if (lost !== null) countRun(metrics, lost)
  return true
}
