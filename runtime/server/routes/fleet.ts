/** Every change of machines: stored, recorded and announced, regardless of who requested it. */
import { after, type MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { fieldError } from '#kit/foundation/field-error.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { refuse, type Result } from '#kit/foundation/result.ts'
import { compareFields } from '#fleet/state/rules/event-table.ts'
import type {
  Acted,
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
  const edits = createUndoableEdits<M>(
    site.elapsed ?? (() => performance.now()),
    (before, left) => site.line.undo?.(before, left, site.now().toISOString()) !== left,
  )
  const within = (bounds: EditBounds<M>): Fleet<M> => {
    const parts = { site, edits, bounds }
    return {
      commit: (mac, by, before, decided) => commit(site, mac, by, before, decided),
      update: (mac, by, decide) => update(parts, mac, by, decide),
      remove: (mac, by) => remove(parts, mac, by, null),
      upsert: (mac, body, by, isExpected) => upsert(parts, mac, body, by, isExpected),
      act: (mac, request, by) => act(parts, mac, request, by),
      findUndoable: (mac) => findUndoable(parts, mac)?.id ?? null,
      listUndoable: (batch) =>
        edits.listOf(batch).filter((mac) => findUndoable(parts, mac) !== null),
      undo: (mac, by, meant) => undo(parts, mac, by, meant),
      async awaitOutcome(mac, order, signal) {
        const outcome = await awaitOutcome(site, mac, order, signal)
        const machine = site.machines.peek(mac)
        // A machine that left the bounds meanwhile counts as deleted.
        return machine === null || bounds.canSee(machine) ? outcome : 'deleted'
      },
      within,
    }
  }
  return within({ canSee: () => true, adds: true, refuse: () => null })
}

interface FleetParts<M extends MachineBase> {
  readonly site: ServerBase<M>
  readonly edits: UndoableEdits<M>
  readonly bounds: EditBounds<M>
}

async function act<M extends MachineBase>(
  parts: FleetParts<M>,
  mac: Mac,
  request: ActionRequest<M>,
  by: By,
): Promise<Acted<M>> {
  const { site, bounds } = parts
  const { action, parameters, isDryRun = false, findConflict, batch = null } = request
  if (action === 'delete') {
    const known = site.machines.peek(mac)
    const isThere = isDryRun
      ? known !== null && bounds.canSee(known)
      : await remove(parts, mac, by, batch)
    return isThere ? { result: 'done', machine: null } : { result: 'missing' }
  }
  const rule = site.line.actions[action]
  if (rule === undefined) return { result: 'refused', reason: `there is no action ${action}` }
  let reason: string | null = null
  const made = await updateByHand(parts, mac, by, request, (machine) => {
    if (machine === null) return null
    const decided = rule.apply(machine, parameters, signed(site, by), batch, bounds.canSee)
    const refusal = decided.ok
      ? (bounds.refuse(machine, decided.value.machine) ??
        findConflict?.(decided.value.machine) ??
        site.line.refuseArming?.(machine, decided.value.machine) ??
        null)
      : decided.refusal
    return after(refusal, (found) => {
      reason = found
      const isDone = decided.ok && reason === null && !isDryRun
      return isDone ? decided.value : { machine, events: [] }
    })
  })
  if (made === null) return { result: 'missing' }
  return reason === null ? { result: 'done', machine: made.machine } : { result: 'refused', reason }
}

async function upsert<M extends MachineBase>(
  parts: FleetParts<M>,
  mac: Mac,
  body: unknown,
  by: By,
  isExpected: (before: M | null) => boolean = () => true,
): Promise<Result<M, UpsertRefusal>> {
  const { site } = parts
  let answer: Result<M, UpsertRefusal> = STALE
  await updateByHand(parts, mac, by, {}, (before) => {
    answer = judgeUpsert(parts, before, body, { mac, by, isExpected })
    if (!answer.ok) return null
    const { value: machine } = answer
    return after(site.line.refuseArming?.(before, machine) ?? null, (reason) => {
      if (reason === null) return { machine, events: [describeUpsert(site.line, before, machine)] }
      answer = refuse({ why: 'fields', fields: [fieldError(IMAGE, reason)] })
      return null
    })
  })
  return answer
}

const STALE = refuse({ why: 'stale' } as const)

function judgeUpsert<M extends MachineBase>(
  { site, bounds }: FleetParts<M>,
  before: M | null,
  body: unknown,
  { mac, by, isExpected }: { mac: Mac; by: By; isExpected(before: M | null): boolean },
): Result<M, UpsertRefusal> {
  if (before === null && !bounds.adds) return refuse({ why: 'missing' })
  if (!isExpected(before)) return STALE
  const parsed = site.line.parseUpsert(body, before, { mac, by: signed(site, by) })
  if (!parsed.ok) return refuse({ why: 'fields', fields: parsed.refusal })
  const reason = bounds.refuse(before, parsed.value)
  return reason === null ? parsed : refuse({ why: 'forbidden', reason })
}

const IMAGE = ['bty_image_ref']

/** An update by a person: it can be undone, and takes the machine out of its batch. */
async function updateByHand<M extends MachineBase>(
  parts: FleetParts<M>,
  mac: Mac,
  by: By,
  { batch = null, continues = false }: Partial<Pick<ActionRequest<M>, 'batch' | 'continues'>>,
  decide: (before: M | null) => MaybePromise<Transition<M> | null>,
): Promise<Transition<M> | null> {
  const found: { before: M | null } = { before: null }
  const made = await update(parts, mac, by, (before) => {
    found.before = before
    return decide(before)
  })
  const { before } = found
  if (made !== null && before !== null && before !== made.machine) {
    const { actor } = by
    parts.edits.note({ before, after: made.machine, hardware: null, batch, actor }, continues)
    await leaveBatch(parts.site, before, made.machine)
  }
  return made
}

/** Nothing is decided about unseen machines, and no forbidden record is stored. */
async function update<M extends MachineBase, T extends Transition<M>>(
  { site, bounds }: FleetParts<M>,
  mac: Mac,
  by: By,
  decide: (before: M | null) => MaybePromise<T | null>,
): Promise<T | null> {
  for (;;) {
    const before = site.machines.newest(mac)
    const isHidden = before !== null && !bounds.canSee(before)
    const found = decide(isHidden ? null : before)
    const decided = found instanceof Promise ? await found : found
    if (decided === null || isHidden) return null
    if (before !== null && bounds.refuse(before, decided.machine) !== null) return null
    if (await commit(site, mac, by, before, decided)) return decided
  }
}

/** Stores only changes. Memory follows at once, for the next machine in the same commit. */
function commit<M extends MachineBase>(
  site: ServerBase<M>,
  mac: Mac,
  by: By,
  before: M | null,
  decided: Transition<M>,
): MaybePromise<boolean> {
  const { machines, onFlashSlot } = site
  const { machine, slot } = decided
  if (slot !== undefined) onFlashSlot?.(machine, slot)
  const isSideBySide = by.actor === 'pxe-client' && !machines.isChanging(mac)
  const stored = machines.commit(mac, before, machine)
  if (!(stored instanceof Promise)) {
    return stored && after(recordEvents(site, mac, by, decided), () => true)
  }
  // A record that could not be stored gives its place back.
  if (slot !== undefined) stored.catch(() => onFlashSlot?.(machine, 'released'))
  return settle(site, stored, isSideBySide, [mac, by, decided])
}

async function settle<M extends MachineBase>(
  site: ServerBase<M>,
  stored: Promise<boolean>,
  isSideBySide: boolean,
  [mac, by, decided]: readonly [Mac, By, Transition<M>],
): Promise<boolean> {
  // Side by side, record and events share one wait for the disk. The events wait for the record
  // where another change or an import beside the server may make it void (an operator's edit).
  const [isStored] = await Promise.all([
    stored,
    isSideBySide ? recordEvents(site, mac, by, decided) : null,
  ])
  if (!isStored) return false
  site.changes.announce({ topic: 'machine', mac })
  if (!isSideBySide) await recordEvents(site, mac, by, decided)
  return true
}

const recordEvents = <M extends MachineBase>(
  { recordAll }: ServerBase<M>,
  mac: Mac,
  { actor, ip }: By,
  { events }: Transition<M>,
): MaybePromise<void> =>
  events.length === 0 ? undefined : recordAll(events, { subject_id: mac, actor, ip })

/** Bounds hold for what would come back, too. */
function findEdit<M extends MachineBase>({ site, edits, bounds }: FleetParts<M>, mac: Mac) {
  const found = site.line.undo === undefined ? null : edits.find(mac)
  const isSeen =
    found !== null &&
    bounds.canSee(found.before) &&
    (found.after === null || bounds.canSee(found.after))
  return isSeen ? found : null
}

function findUndoable<M extends MachineBase>(parts: FleetParts<M>, mac: Mac) {
  const found = findEdit(parts, mac)
  return found !== null && isUnchanged(found.after, parts.site.machines.newest(mac)) ? found : null
}

/** Only where the record is as the edit left it. */
async function undo<M extends MachineBase>(
  parts: FleetParts<M>,
  mac: Mac,
  by: By,
  meant: MeantEdit = {},
): Promise<Acted<M>> {
  const { site, edits, bounds } = parts
  const { line, machines, now } = site
  const undone = findEdit(parts, mac)
  if (undone === null) return { result: 'refused', reason: TOO_LATE }
  if (!isMeant(undone, by, meant)) return { result: 'refused', reason: CHANGED_SINCE }
  if (!undone.bringsBack) return { result: 'refused', reason: NOTHING_BACK }
  const forbidden = bounds.refuse(undone.after ?? undone.before, undone.before)
  if (forbidden !== null) return { result: 'refused', reason: forbidden }
  const made = await update(parts, mac, by, (present) => {
    const restored = line.undo?.(undone.before, present, now().toISOString())
    if (restored === undefined || !isUnchanged(undone.after, present)) return null
    return { machine: restored, events: [describeUndo(line, present, restored, meant.batch)] }
  })
  if (made === null) return { result: 'refused', reason: CHANGED_SINCE }
  edits.forget(mac)
  await leaveBatch(site, undone.after ?? undone.before, made.machine, undone.batch)
  if (undone.hardware !== null) {
    await machines.saveHardware(mac, undone.hardware.json, undone.hardware.at)
  }
  return { result: 'done', machine: made.machine }
}

const isMeant = (
  edit: { readonly id: string; readonly actor: string; readonly batch: string | null },
  by: By,
  meant: MeantEdit,
): boolean => {
  if (meant.batch) return meant.batch === edit.batch
  return meant.edit ? meant.edit === edit.id : edit.actor === by.actor
}

const TOO_LATE = 'There is nothing to undo from the last minute.'
export const NOTHING_BACK =
  'Nothing was undone. The edit disarmed the machine, and undo never arms one. Arm it again.'
const CHANGED_SINCE = 'Not undone, because the machine was changed since.'

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
  undone: string | null = null,
): Promise<void> {
  if (before === edited) return
  await batches?.leave(before, edited, undone).catch((thrown: unknown) => {
    log.error(`the batch of ${before.mac}: ${renderError(thrown)}`)
  })
}

const signed = <M extends MachineBase>({ now }: ServerServices<M>, { actor, ip }: By) => ({
  actor,
  ip,
  at: now().toISOString(),
})

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
  let logged = ''
  return (events, { subject_id, actor, ip: source_ip }) => {
    const storing = journal.recordOrCount(
      events.map((event) => ({ subject_kind: 'machine', ...event, subject_id, actor, source_ip })),
    )
    const isRoutine = events.every(({ kind }) => ROUTINE.has(kind))
    const recorded = storing?.then(
      () => void (logged = ''),
      (error: unknown) => {
        const why = renderError(error)
        if (isRoutine && why === logged) return
        logged = why
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

/** False: there was none. */
async function remove<M extends MachineBase>(
  { site, edits, bounds }: FleetParts<M>,
  mac: Mac,
  by: By,
  batch: string | null,
): Promise<boolean> {
  const hardware = site.line.undo === undefined ? null : await site.machines.findHardware(mac)
  // A plan on its way to the disk still counts as given.
  const before = site.machines.newest(mac)
  if (before !== null && !bounds.canSee(before)) return false
  const isGone = await removeMachine(site, mac, by)
  if (isGone && before !== null) {
    edits.note({ before, after: null, hardware, batch, actor: by.actor }, false)
  }
  return isGone
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
