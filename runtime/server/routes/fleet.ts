/** Every change of machines: stored, recorded and announced, regardless of who requested it. */
import { after, type Eventual } from '#kit/foundation/eventual.ts'
import { renderError } from '#kit/foundation/fault.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { refuse, type Result } from '#kit/foundation/result.ts'
import { compareFields } from '#fleet/state/rules/event-table.ts'
import type {
  ActionRequest,
  Fleet,
  MeantEdit,
  ServerBase,
  ServerServices,
  UpsertRefusal,
} from './site.ts'
import type { EditBounds } from './rules/edit-bounds.ts'
import type { Transition } from './transition.ts'
import {
  createUndoableEdits,
  isUnchanged,
  type UndoableEdits,
} from '#fleet/machine/undoable-edits.ts'
import type { PlainEvent, RecordEvents, By } from '#kit/web/answers/caller.ts'
import { awaitOutcome } from './flash-follow.ts'
import { countRun, renderLost } from './runs.ts'

export function createFleet<M extends MachineBase>(site: ServerBase<M>): Fleet<M> {
  const commit = createCommit(site)
  const edits = createUndoableEdits<M>(
    site.elapsed ?? (() => performance.now()),
    (before, left) => site.line.undo?.(before, left, site.now().toISOString()) !== left,
  )
  const make = (bounds: EditBounds<M>): Fleet<M> => {
    const update = createUpdate(site, commit, bounds)
    const parts = { site, edits, update, bounds }
    const { edit, removeNoted } = createEdits(parts)
    return {
      commit,
      update,
      remove: (mac, by) => removeNoted(mac, by, null),
      upsert: createUpsert(parts, edit),
      ...createUndo(parts),
      act: createAct(parts, edit, removeNoted),
      async awaitOutcome(mac, order, signal) {
        const outcome = await awaitOutcome(site, mac, order, signal)
        const machine = site.machines.peek(mac)
        // A machine that left the bounds meanwhile counts as deleted.
        return machine === null || bounds.sees(machine) ? outcome : 'deleted'
      },
      within: make,
    }
  }
  return make({ sees: () => true, adds: true, refuse: () => null })
}

interface BoundFleetDependencies<M extends MachineBase> {
  readonly site: ServerBase<M>
  readonly edits: UndoableEdits<M>
  readonly update: Fleet<M>['update']
  readonly bounds: EditBounds<M>
}

/** Nothing is decided about unseen machines, and no forbidden record is stored. */
function createUpdate<M extends MachineBase>(
  { machines }: ServerBase<M>,
  commit: Fleet<M>['commit'],
  { sees, refuse: forbids }: EditBounds<M>,
): Fleet<M>['update'] {
  const update: Fleet<M>['update'] = async (mac, by, decide) => {
    const before = machines.newest(mac)
    const decided = decide(before !== null && sees(before) ? before : null)
    if (decided === null || (before !== null && !sees(before))) return null
    if (before !== null && forbids(before, decided.machine) !== null) return null
    if (await commit(mac, by, before, decided)) return decided
    return await update(mac, by, decide)
  }
  return update
}

type Edit<M extends MachineBase> = ReturnType<typeof createEdits<M>>['edit']

const createUpsert =
  <M extends MachineBase>(
    { site, bounds }: BoundFleetDependencies<M>,
    edit: Edit<M>,
  ): Fleet<M>['upsert'] =>
  async (mac, body, by, isExpected = () => true) => {
    const { line } = site
    let answer: Result<M, UpsertRefusal> = refuse({ why: 'stale' })
    await edit(mac, by, {}, (before) => {
      answer = refuse({ why: before === null && !bounds.adds ? 'missing' : 'stale' })
      if ((before === null && !bounds.adds) || !isExpected(before)) return null
      const parsed = line.parseUpsert(body, before, { mac, by: signed(site, by) })
      answer = parsed.ok ? parsed : refuse({ why: 'fields', fields: parsed.refusal })
      if (!parsed.ok) return null
      const reason = bounds.refuse(before, parsed.value)
      if (reason !== null) answer = refuse({ why: 'forbidden', reason })
      return reason === null
        ? { machine: parsed.value, events: [describeUpsert(line, before, parsed.value)] }
        : null
    })
    return answer
  }

const createAct =
  <M extends MachineBase>(
    { site, bounds }: BoundFleetDependencies<M>,
    edit: Edit<M>,
    removeNoted: ReturnType<typeof createEdits<M>>['removeNoted'],
  ): Fleet<M>['act'] =>
  async (mac, request, by) => {
    const { action, parameters, isDryRun = false, findConflict, batch = null } = request
    if (action === 'delete') {
      const known = site.machines.peek(mac)
      const isThere = isDryRun
        ? known !== null && bounds.sees(known)
        : await removeNoted(mac, by, batch)
      return isThere ? { result: 'done', machine: null } : { result: 'missing' }
    }
    const rule = site.line.actions[action]
    if (rule === undefined) return { result: 'refused', reason: `there is no action ${action}` }
    let reason: string | null = null
    const made = await edit(mac, by, request, (machine) => {
      if (machine === null) return null
      const decided = rule.apply(machine, parameters, signed(site, by), batch, bounds.sees)
      reason = decided.ok
        ? (bounds.refuse(machine, decided.value.machine) ??
          findConflict?.(decided.value.machine) ??
          null)
        : decided.refusal
      const isDone = decided.ok && reason === null && !isDryRun
      return isDone ? decided.value : { machine, events: [] }
    })
    if (made === null) return { result: 'missing' }
    return reason === null
      ? { result: 'done', machine: made.machine }
      : { result: 'refused', reason }
  }

function createEdits<M extends MachineBase>({
  site,
  edits,
  update,
  bounds,
}: BoundFleetDependencies<M>) {
  const { line, machines } = site
  const edit = async <T extends Transition<M>>(
    mac: Mac,
    by: By,
    { batch = null, continues = false }: Partial<Pick<ActionRequest<M>, 'batch' | 'continues'>>,
    decide: (before: M | null) => T | null,
  ): Promise<T | null> => {
    const found: { before: M | null } = { before: null }
    const made = await update(mac, by, (before) => {
      found.before = before
      return decide(before)
    })
    const { before } = found
    if (made !== null && before !== null && before !== made.machine) {
      const { actor } = by
      edits.note({ before, after: made.machine, hardware: null, batch, actor }, continues)
      await leaveBatch(site, before, made.machine)
    }
    return made
  }
  const removeNoted = async (mac: Mac, by: By, batch: string | null) => {
    const hardware = line.undo === undefined ? null : await machines.findHardware(mac)
    // A plan on its way to the disk still counts as given.
    const before = machines.newest(mac)
    if (before !== null && !bounds.sees(before)) return false
    const isGone = await removeMachine(site, mac, by)
    if (isGone && before !== null) {
      edits.note({ before, after: null, hardware, batch, actor: by.actor }, false)
    }
    return isGone
  }
  return { edit, removeNoted }
}

/** Only where the record is as the edit left it. */
function createUndo<M extends MachineBase>({
  site,
  edits,
  update,
  bounds,
}: BoundFleetDependencies<M>): Pick<Fleet<M>, 'findUndoable' | 'listUndoable' | 'undo'> {
  const { line, machines, now } = site
  /** Bounds hold for what would come back, too. */
  const findEdit = (mac: Mac) => {
    const edit = line.undo === undefined ? null : edits.find(mac)
    const isSeen =
      edit !== null && bounds.sees(edit.before) && (edit.after === null || bounds.sees(edit.after))
    return isSeen ? edit : null
  }
  const findUndoable = (mac: Mac) => {
    const edit = findEdit(mac)
    return edit !== null && isUnchanged(edit.after, machines.newest(mac)) ? edit.id : null
  }
  return {
    findUndoable,
    listUndoable: (batch) => edits.listOf(batch).filter((mac) => findUndoable(mac) !== null),
    async undo(mac, by, meant = {}) {
      const edit = findEdit(mac)
      if (edit === null) return { result: 'refused', reason: TOO_LATE }
      if (!isMeant(edit, by, meant)) return { result: 'refused', reason: CHANGED_SINCE }
      if (!edit.bringsBack) return { result: 'refused', reason: NOTHING_BACK }
      const forbidden = bounds.refuse(edit.after ?? edit.before, edit.before)
      if (forbidden !== null) return { result: 'refused', reason: forbidden }
      const made = await update(mac, by, (present) => {
        const restored = line.undo?.(edit.before, present, now().toISOString())
        if (restored === undefined || !isUnchanged(edit.after, present)) return null
        return { machine: restored, events: [describeUndo(line, present, restored, meant.batch)] }
      })
      if (made === null) return { result: 'refused', reason: CHANGED_SINCE }
      edits.forget(mac)
      if (edit.after !== null) await leaveBatch(site, edit.after, made.machine, 'undone')
      if (edit.hardware !== null) {
        await machines.saveHardware(mac, edit.hardware.json, edit.hardware.at)
      }
      return { result: 'done', machine: made.machine }
    },
  }
}

const isMeant = (
  edit: { readonly id: string; readonly actor: string; readonly batch: string | null },
  by: By,
  meant: MeantEdit,
): boolean => {
  if (meant.batch) return meant.batch === edit.batch
  return meant.edit ? meant.edit === edit.id : edit.actor === by.actor
}

const TOO_LATE = 'There is no edit of the last minute to undo.'
export const NOTHING_BACK =
  'Nothing to undo: the edit took an order away, and undo arms nothing. Arm the machine again.'
const CHANGED_SINCE = 'The machine has changed since, so the edit was not undone.'

function describeUndo<M extends MachineBase>(
  { describe }: ServerServices<M>['line'],
  present: M | null,
  restored: M,
  batch: string | null | undefined,
): PlainEvent {
  const { details } = describe(restored)
  const before = present === null ? {} : describe(present).details
  const changes = compareFields(before, details)
  const summary = `An edit of ${restored.mac} was undone`
  const part = batch ? { batch } : {}
  return { kind: 'machine.undone', summary, details: { ...part, ...details, changes } }
}

/** The edit is done and matters more than its batch: a failure is logged. */
async function leaveBatch<M extends MachineBase>(
  { batches, log }: ServerBase<M>,
  before: M,
  edited: M | null,
  how: 'edited' | 'undone' = 'edited',
): Promise<void> {
  if (before === edited) return
  await batches?.leave(before, edited, how).catch((thrown: unknown) => {
    log.error(`the batch of ${before.mac}: ${renderError(thrown)}`)
  })
}

const signed = <M extends MachineBase>({ now }: ServerServices<M>, { actor, ip }: By) => ({
  actor,
  ip,
  at: now().toISOString(),
})

/** Stores only changes. Memory follows at once, for the next machine in the same commit. */
function createCommit<M extends MachineBase>({
  machines,
  changes,
  recordAll,
  onFlashSlot,
}: ServerBase<M>): Fleet<M>['commit'] {
  const recordEvents = (mac: Mac, { actor, ip }: By, { events }: Transition<M>): Eventual<void> =>
    events.length === 0 ? undefined : recordAll(events, { subject_id: mac, actor, ip })

  async function settle(
    stored: Promise<boolean>,
    isSideBySide: boolean,
    [mac, by, decided]: readonly [Mac, By, Transition<M>],
  ): Promise<boolean> {
    // A record that could not be stored gives its place back.
    if (decided.slot !== undefined) stored.catch(() => onFlashSlot?.(decided.machine, 'released'))
    // Side by side, record and events share one wait for the disk. The events wait for the record
    // where another change or an import beside the server may make it void (an operator's edit).
    const [isStored] = await Promise.all([
      stored,
      isSideBySide ? recordEvents(mac, by, decided) : null,
    ])
    if (!isStored) return false
    changes.announce({ topic: 'machine', mac })
    if (!isSideBySide) await recordEvents(mac, by, decided)
    return true
  }

  return (mac, by, before, decided) => {
    const { machine, slot } = decided
    if (slot !== undefined) onFlashSlot?.(machine, slot)
    const isSideBySide = by.actor === 'pxe-client' && !machines.isChanging(mac)
    const stored = machines.commit(mac, before, machine)
    if (stored instanceof Promise) return settle(stored, isSideBySide, [mac, by, decided])
    return stored && after(recordEvents(mac, by, decided), () => true)
  }
}

/** Kinds that come with each contact of a machine: its answer does not wait until they are on disk. */
const ROUTINE: ReadonlySet<string> = new Set([
  'netboot.pxe.offered',
  'netboot.pxe.plan',
  'netboot.flasher.armed',
])

/**
 * Failures are logged, not thrown: the request matters more than its record. Of events that come
 * with each contact, only the first of a reason is logged.
 */
export function createEventRecorder({
  journal,
  log,
}: Pick<ServerServices, 'log'> & {
  readonly journal: Pick<ServerServices['journal'], 'recordOrCount'>
}): RecordEvents {
  let told = ''
  return (events, { subject_id, actor, ip: source_ip }) => {
    const storing = journal.recordOrCount(
      events.map((event) => ({ subject_kind: 'machine', ...event, subject_id, actor, source_ip })),
    )
    const isRoutine = events.every(({ kind }) => ROUTINE.has(kind))
    const recorded = storing?.then(
      () => void (told = ''),
      (error: unknown) => {
        const why = renderError(error)
        if (isRoutine && why === told) return
        told = why
        log.error(`event ${events.map(({ kind }) => kind).join(', ')}: ${why}`)
      },
    )
    return isRoutine ? undefined : recorded
  }
}

function describeUpsert<M extends MachineBase>(
  { describe }: ServerServices<M>['line'],
  before: M | null,
  saved: M,
): PlainEvent {
  const { mac } = saved
  const { details } = describe(saved)
  if (before === null) return { kind: 'machine.created', summary: `${mac} was created`, details }
  const changes = compareFields(describe(before).details, details)
  const isSame = Object.keys(changes).length === 0
  const summary = `${mac} ${isSame ? 'was saved without a change' : 'was changed'}`
  return { kind: 'machine.upserted', summary, details: { ...details, changes } }
}

async function removeMachine<M extends MachineBase>(
  site: ServerBase<M>,
  mac: Mac,
  by: By,
): Promise<boolean> {
  const { machines, line, runs, changes, metrics, recordAll, power, log } = site
  const before = machines.peek(mac)
  if (!(await machines.remove(mac))) return false
  // The machine is gone already; DELETE /machines/{mac}/power can be repeated.
  await power?.forgetMachine(mac).catch((thrown: unknown) => {
    log.error(`the BMC of ${mac}, which was deleted, is still known: ${String(thrown)}`)
  })
  if (before !== null) await leaveBatch(site, before, null)
  const lost = await runs.giveUp(mac, 'Its machine was deleted.')
  changes.announce({ topic: 'machine', mac })
  const details = before === null ? null : line.describe(before).details
  const deletion: PlainEvent = { kind: 'machine.deleted', summary: `${mac} was deleted`, details }
  const events = lost === null ? [deletion] : [deletion, renderLost(lost)]
  await recordAll(events, { subject_id: mac, ...by })
  if (lost !== null) countRun(metrics, lost)
  return true
}
