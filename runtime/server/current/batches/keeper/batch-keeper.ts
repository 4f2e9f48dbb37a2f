/** Makes a batch of what is done to many machines at once, and says how far each of them is. */
import { isPending } from '#engine/capture/rules/order.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { Batches } from '#fleet/batch/batches.ts'
import {
  countMembers,
  decideMember,
  findCommonLabel,
  isOpen,
  nameBatch,
  type Batch,
  type BatchCounts,
  type BatchMember,
  type MemberState,
} from '#fleet/batch/rules/batch.ts'
import type { Machines } from '#fleet/state/machines.ts'
import type { BatchMaker } from '#server/routes/batch-maker.ts'
import { letOthersIn } from '#server/routes/many.ts'
import { type Machine, channelOf } from '#server/current/machines/rules/machine.ts'
import {
  decideLeaving,
  describeOrder,
  findNewOrder,
  isOrderOf,
  isUnderWay,
} from '#server/current/batches/rules/order-facts.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { By } from '#kit/web/answers/caller.ts'
import type { Scope } from '#kit/web/answers/rules/rights.ts'
import type { Site } from '#server/routes/site.ts'
import {
  disarmByHand,
  hasFlashOrder,
  pauseOrder,
  resumeOrder,
} from '#server/current/machines/rules/disarming.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { SYSTEM_EVENT } from '#fleet/state/event-rows.ts'
import type { Journal } from '#fleet/state/journal.ts'
import type { Changes } from '#kit/host/changes.ts'

// Notes that nothing more of a batch is to come, as an event of its own.

interface BatchEndsDependencies {
  readonly keeper: BatchKeeper
  readonly machines: Pick<Machines<Machine>, 'peek'>
  readonly changes: Changes
  readonly journal: Pick<Journal, 'record'>
  now(): Date
  readonly log: { warn(message: string): void }
}

/** A batch of 10,000 machines is not counted at each change. */
const LOOK_MS = 3000

export function startBatchEnds(given: BatchEndsDependencies): Disposable {
  const { keeper, machines, changes, log } = given
  const touched = new Set(listOpen(keeper))
  let isLooking = false

  const stop = changes.listen(
    (change) => {
      if (change.topic === 'batch') touched.add(change.id)
      if (change.topic !== 'machine') return
      const mac = parseMac(change.mac)
      const machine = mac.ok ? machines.peek(mac.value) : null
      if (machine?.cycle.batch != null) touched.add(machine.cycle.batch)
      // A capture does not begin a cycle, so its record names no batch.
      if (machine?.capture != null) for (const id of listCaptures(keeper)) touched.add(id)
    },
    ['batch', 'machine'],
  )
  // A restore disarms machines and says so of none of them.
  const stopRestores = changes.listen(() => {
    for (const id of listOpen(keeper)) touched.add(id)
  }, ['settings'])

  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    try {
      for (const id of touched) {
        touched.delete(id)
        const batch = keeper.find(id)
        if (batch !== null) await settleBatch(batch, given)
      }
    } catch (thrown) {
      log.warn(`the end of batches: ${renderError(thrown)}`)
    } finally {
      isLooking = false
    }
  }

  const timer = setInterval(() => void look(), LOOK_MS).unref()
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      stop()
      stopRestores()
    },
  }
}

const listOpen = (keeper: BatchKeeper): readonly string[] =>
  keeper
    .list()
    .filter(({ ended_at }) => ended_at === null)
    .map(({ id }) => id)

const listCaptures = (keeper: BatchKeeper): readonly string[] =>
  keeper
    .list()
    .filter(({ action, ended_at }) => action === 'capture' && ended_at === null)
    .map(({ id }) => id)

/** A retried batch ends again. A batch without orders has no end. */
async function settleBatch(batch: Batch, { keeper, journal, now }: BatchEndsDependencies) {
  if (batch.acted_at === null) return
  const members = keeper.listMembers(batch)
  const { isOpen: hasMore, counts } = keeper.view(batch, members)
  if (hasMore !== (batch.ended_at !== null)) return
  const ended_at = hasMore ? null : now().toISOString()
  await keeper.change(batch.id, (before) => ({ ...before, ended_at }))
  if (hasMore || members.every(({ order }) => order === null)) return
  await journal.record({
    ...SYSTEM_EVENT,
    kind: 'batch.ended',
    subject_kind: 'batch',
    subject_id: batch.id,
    summary: `Finished: ${nameBatch(batch)} (${nameCounts(counts)})`,
    details: { armed_by: batch.by.actor, ...counts },
  })
}

/** `41 done, 3 failed` */
const nameCounts = (counts: BatchCounts): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${state}`)
    .join(', ')

interface KeeperDependencies {
  readonly batches: Batches
  readonly machines: Pick<Machines<Machine>, 'peek' | 'peekAll'>
  findImage(ref: string): CatalogEntry | null
  now(): Date
}

export interface BatchView {
  readonly batch: Batch
  readonly counts: BatchCounts
  readonly isOpen: boolean
}

export interface MemberView extends BatchMember {
  /** Null: it was deleted. */
  readonly machine: Machine | null
  readonly state: MemberState
}

export type BatchKeeper = ReturnType<typeof createBatchKeeper>

export type SeenMachines = KeeperDependencies['machines']

/** Actions whose orders write an image. */
export const WRITES: ReadonlySet<string> = new Set(['flash', 'image', 'mode'])

export function createBatchKeeper(site: KeeperDependencies) {
  const { batches, machines, now } = site

  const listOwn = (id: string): readonly Machine[] =>
    machines.peekAll().filter(({ cycle: { batch } }) => batch === id)

  function listMembers(batch: Batch): readonly MemberView[] {
    const stored = batches.listMembers(batch.id)
    return [...stored, ...listUnstored(batch, stored)].map((member) => {
      const machine = machines.peek(member.mac)
      const facts = machine === null ? null : describeOrder(machine, batch)
      return { ...member, machine, state: decideMember(member, facts) }
    })
  }

  /** Machines without rows yet, or for good: the batch was cut off. */
  function listUnstored(
    { id, acted_at }: Batch,
    stored: readonly BatchMember[],
  ): readonly BatchMember[] {
    if (acted_at !== null) return []
    const macs = new Set(stored.map(({ mac }) => mac))
    return listOwn(id)
      .filter((machine) => !macs.has(machine.mac) && isOrderOf(machine, id))
      .map(({ mac, cycle }) => ({ mac, order: cycle.started_at, refusal: null, left: null }))
  }

  function view(batch: Batch, members = listMembers(batch)): BatchView {
    const counts = countMembers(members.map(({ state }) => state))
    return { batch, counts, isOpen: isOpen(counts) }
  }

  /** Newest first, also such as have just ended. */
  function listUnderWay(): readonly Batch[] {
    const fleet = machines.peekAll()
    const ids = new Set(fleet.filter(isUnderWay).flatMap(({ cycle: { batch } }) => batch ?? []))
    const isCapturing = fleet.some(({ capture }) => isPending(capture))
    return batches
      .list()
      .filter(({ id, action }) => ids.has(id) || (isCapturing && action === 'capture'))
  }

  return {
    find: batches.find,
    list: batches.list,
    /** Whether the viewer sees all of its machines. */
    isWhole: (_batch: Batch): boolean => true,
    listMembers,
    view,
    change: batches.change,
    /** Each in its own turn of the event loop: one may have the whole fleet. */
    viewAll: (several: readonly Batch[]) => viewEach(several, view),
    /** Newest first. */
    listOpen: (): readonly BatchView[] =>
      listUnderWay()
        .map((batch) => view(batch))
        .filter((each) => each.isOpen),
    /** For every page, so no machine is looked at twice: those that have not ended, as far as is known. */
    countOpen: (): number => listUnderWay().filter(({ ended_at }) => ended_at === null).length,
    /** The machines whose present order came with this batch. */
    listOwn,
    /** For machines of the batch that had other orders before. */
    renew: (id: string, members: readonly BatchMember[]) => batches.keepMembers(id, members),
    maker: createMaker(site, now),
  }
}

export async function viewEach(
  several: readonly Batch[],
  view: (batch: Batch) => BatchView,
): Promise<readonly BatchView[]> {
  const views: BatchView[] = []
  for (const [at, batch] of several.entries()) {
    views.push(view(batch))
    await letOthersIn(at, 1)
  }
  return views
}

function createMaker(
  { batches, machines, findImage }: KeeperDependencies,
  now: () => Date,
): BatchMaker<Machine> {
  return {
    async begin({ action, macs, q, by }) {
      const batch = await batches.begin({
        action,
        by: { ...by, at: now().toISOString() },
        image: null,
        target: printable(q?.trim() ?? '') || null,
        machines: macs.length,
      })
      let members: BatchMember[] = []
      const changed: Machine[] = []
      const keep = async () => {
        const noted = members
        members = []
        await batches.keepMembers(batch.id, noted)
      }
      return {
        id: batch.id,
        note(mac, before, after, refusal) {
          const order =
            before === null || after === null ? null : findNewOrder(before, after, action)
          if (after !== null && refusal === null) changed.push(after)
          members.push({ mac, order, refusal, left: null })
        },
        keep,
        async settle() {
          await keep()
          const acted_at = now().toISOString()
          const image = WRITES.has(action) ? findOneImage(changed, findImage) : null
          const label = findCommonLabel(changed, machines.peekAll())
          const target = label ?? batch.target
          await batches.change(batch.id, (begun) => ({ ...begun, image, target, acted_at }))
          return nameBatch({ action, image, target })
        },
      }
    },
    async leave(before, after, undone) {
      const { batch, started_at } = before.cycle
      const left = after?.cycle.started_at === started_at ? null : batch
      const id = undone ?? left
      if (id === null) return
      await batches.leave(id, before.mac, ({ order }) =>
        decideLeaving(before, order, undone !== null),
      )
    },
  }
}

function findOneImage(
  machines: readonly Machine[],
  findImage: (ref: string) => CatalogEntry | null,
): string | null {
  const refs = new Set(machines.map(({ bty_image_ref }) => bty_image_ref))
  const [ref = null, ...others] = refs
  if (ref === null || others.length > 0) return null
  return findImage(ref)?.name ?? ref.slice(0, 12)
}

interface BatchRow {
  readonly past: string
  readonly scope: Scope
}

/** `resume` and `retry` arm machines, so they need the scope of a flash. */
export const BATCH_ACTIONS = {
  pause: { past: 'Paused', scope: 'machines' },
  resume: { past: 'Resumed', scope: 'flash' },
  disarm: { past: 'Disarmed', scope: 'machines' },
  undo: { past: 'Restored', scope: 'machines' },
  retry: { past: 'Retried', scope: 'flash' },
} as const satisfies Readonly<Record<string, BatchRow>>
export type BatchAction = keyof typeof BATCH_ACTIONS

interface BatchSite {
  readonly site: Site<Machine>
  readonly keeper: BatchKeeper
}

interface BatchActed {
  readonly done: number
}

/** Records one event for the batch, with `why` if given. The refusal gives the reason. */
export async function actOnBatch(
  on: BatchSite,
  batch: Batch,
  action: BatchAction,
  by: By,
  why: string | null = null,
): Promise<Result<BatchActed, string>> {
  if (action === 'retry' && batch.paused_at !== null) return refuse(PAUSED)
  const isOfAll = action === 'pause' || action === 'resume'
  if (isOfAll && !on.keeper.isWhole(batch)) return refuse(PARTLY)
  const done = await ACTS[action](on, batch, by)
  const name = nameBatch(batch)
  const about = name === batch.action ? '' : `: ${name}`
  const summary = `${BATCH_ACTIONS[action].past} ${done} ${done === 1 ? 'machine' : 'machines'}${about}${why === null ? '' : `, as ${why}`}`
  const event = {
    kind: `batch.${action}`,
    subject_kind: 'batch',
    summary,
    details: { action, done },
  } as const
  await on.site.recordAll([event], { subject_id: batch.id, ...by })
  return accept({ done })
}

const PARTLY = 'The batch has machines that you may not change. Ask an administrator to pause it.'
const PAUSED = 'The batch is paused. Resume it first.'

/** Resolves to the number of changed machines. */
type ActOnBatch = (on: BatchSite, batch: Batch, by: By) => Promise<number>

const ACTS: Readonly<Record<BatchAction, ActOnBatch>> = {
  async pause(on, batch, by) {
    const paused_at = on.site.now().toISOString()
    await on.keeper.change(batch.id, (each) => ({
      ...each,
      paused_at: each.paused_at ?? paused_at,
    }))
    return await changeOwn(on, batch, by, 'pause')
  },
  async resume(on, batch, by) {
    await on.keeper.change(batch.id, (each) => ({ ...each, paused_at: null, resumed_by: by.actor }))
    return await changeOwn(on, batch, by, 'resume')
  },
  disarm: (on, batch, by) =>
    actOnMembers(on, batch, by, ({ machine, state }) => {
      if (machine === null || !UNBEGUN.has(state)) return null
      if (batch.action === 'capture') return { action: 'cancel-capture', parameters: {} }
      return disarmByHand(machine, on.site.now().toISOString()).ok
        ? { action: 'disarm', parameters: {} }
        : null
    }),
  async undo({ site }, { id }, by) {
    let done = 0
    for (const [at, mac] of site.fleet.listUndoable(id).entries()) {
      const undone = await site.fleet.undo(mac, by, { batch: id })
      if (undone.result === 'done') done += 1
      await letOthersIn(at)
    }
    return done
  },
  retry: (on, batch, by) =>
    actOnMembers(on, batch, by, ({ machine, state }) =>
      machine === null || state !== 'failed' ? null : planRetry(batch, machine),
    ),
}

/** One that runs may only have been offered a live system: its record knows if its flash began. */
const UNBEGUN: ReadonlySet<MemberView['state']> = new Set(['waiting', 'paused', 'running'])

interface PlannedAct {
  readonly action: string
  readonly parameters: object
}

function planRetry({ action }: Batch, machine: Machine): PlannedAct | null {
  const { capture, bty_image_ref } = machine
  if (action === 'refresh') return { action, parameters: {} }
  if (action !== 'capture') {
    const channel = channelOf(machine)
    // The image that was confirmed for the batch; its channel may point elsewhere by now.
    const parameters = channel === null ? {} : { channel, bty_image_ref }
    return { action: 'flash', parameters }
  }
  if (capture === null) return null
  const { name, disk_serial, generalize } = capture
  return { action, parameters: { name, disk_serial, generalize } }
}

const CHANGES = {
  pause: { apply: pauseOrder, words: 'was paused with its batch' },
  resume: { apply: resumeOrder, words: 'was resumed with its batch' },
} as const

/** Only machines whose present order came with this batch, each by its newest record. */
async function changeOwn(
  { site, keeper }: BatchSite,
  { id }: Batch,
  by: By,
  name: keyof typeof CHANGES,
): Promise<number> {
  const { apply, words } = CHANGES[name]
  let done = 0
  for (const [at, { mac }] of keeper.listOwn(id).entries()) {
    const made = await site.fleet.update(mac, by, (machine) => {
      if (machine?.cycle.batch !== id) return null
      const changed = apply(machine, site.now().toISOString())
      if (!changed.ok) return null
      // A restore or a person may have taken its order away while it was paused.
      const goesOn = hasFlashOrder(changed.value)
      const event = { kind: `machine.${name}`, summary: `${mac} ${words}`, details: { batch: id } }
      return { machine: changed.value, events: goesOn ? [event] : [], slot: 'released' }
    })
    if (made !== null && hasFlashOrder(made.machine)) done += 1
    await letOthersIn(at)
  }
  return done
}

/** Only those for which `plan` returns an action. */
async function actOnMembers(
  { site, keeper }: BatchSite,
  batch: Batch,
  by: By,
  plan: (member: MemberView) => PlannedAct | null,
): Promise<number> {
  const renewed: BatchMember[] = []
  let done = 0
  for (const [at, member] of keeper.listMembers(batch).entries()) {
    const planned = plan(member)
    const { mac, machine: before } = member
    if (planned === null || before === null) continue
    // Undo restores the state from before the batch, not the order that the batch gave.
    const continues = planned.action === 'disarm'
    const acted = await site.fleet.act(mac, { ...planned, batch: batch.id, continues }, by)
    if (acted.result !== 'done' || acted.machine === null) continue
    done += 1
    const order = findNewOrder(before, acted.machine, planned.action)
    if (order !== null) renewed.push({ mac, order, refusal: null, left: null })
    await letOthersIn(at)
  }
  await keeper.renew(batch.id, renewed)
  return done
}
