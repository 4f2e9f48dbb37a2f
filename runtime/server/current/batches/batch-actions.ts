/** What people do to a batch: pause it, let it go on, disarm what has not begun, retry what failed. */
import { nameBatch, type Batch, type BatchMember } from '#fleet/batch/rules/batch.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { By } from '#kit/web/answers/caller.ts'
import type { Scope } from '#kit/web/answers/rules/rights.ts'
import { letOthersIn } from '#server/routes/many.ts'
import type { Site } from '#server/routes/site.ts'
import { disarmByHand, hasFlashOrder, pauseOrder, resumeOrder } from '../rules/disarming.ts'
import { channelOf, type Machine } from '../rules/machine.ts'
import type { BatchKeeper, MemberView } from './batch-keeper.ts'
import { findNewOrder } from './rules/order-facts.ts'

interface BatchRow {
  readonly past: string
  readonly scope: Scope
}

/** `resume` and `retry` arm machines, so they need the scope of a flash. */
export const BATCH_ACTIONS = {
  pause: { past: 'was paused', scope: 'machines' },
  resume: { past: 'goes on', scope: 'flash' },
  disarm: { past: 'was disarmed where nothing had begun', scope: 'machines' },
  undo: { past: 'was undone', scope: 'machines' },
  retry: { past: 'is tried again where it had failed', scope: 'flash' },
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
  const summary = `${nameBatch(batch)} ${BATCH_ACTIONS[action].past}${why === null ? '' : `, as ${why}`}: ${done} ${done === 1 ? 'machine' : 'machines'}`
  const event = {
    kind: `batch.${action}`,
    subject_kind: 'batch',
    summary,
    details: { action, done },
  } as const
  await on.site.recordAll([event], { subject_id: batch.id, ...by })
  return accept({ done })
}

const PARTLY =
  'The batch has machines outside of your scope: somebody who sees all of it may pause it.'
const PAUSED = 'The batch is paused: let it go on first.'

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
  pause: { apply: pauseOrder, words: 'waits: its batch was paused' },
  resume: { apply: resumeOrder, words: 'goes on with its batch' },
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
