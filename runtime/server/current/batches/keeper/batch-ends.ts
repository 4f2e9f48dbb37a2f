/** Notes that nothing more of a batch is to come, as an event of its own. */
import { renderError } from '#kit/foundation/fault.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { nameBatch, type Batch, type BatchCounts } from '#fleet/batch/rules/batch.ts'
import { SYSTEM_EVENT } from '#fleet/state/event-rows.ts'
import type { Journal } from '#fleet/state/journal.ts'
import type { Machines } from '#fleet/state/machines.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import type { BatchKeeper } from './batch-keeper.ts'

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
  const touched = new Set(
    keeper
      .list()
      .filter(({ ended_at }) => ended_at === null)
      .map(({ id }) => id),
  )
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
    },
  }
}

const listCaptures = (keeper: BatchKeeper): readonly string[] =>
  keeper
    .list()
    .filter(({ action, ended_at }) => action === 'capture' && ended_at === null)
    .map(({ id }) => id)

/** A retried batch ends again. A batch without orders has no end. */
async function settleBatch(batch: Batch, { keeper, journal, now }: BatchEndsDependencies) {
  if (batch.acted_at === null) return
  const members = keeper.listMembers(batch)
  const { isOpen, counts } = keeper.view(batch, members)
  if (isOpen !== (batch.ended_at !== null)) return
  const ended_at = isOpen ? null : now().toISOString()
  await keeper.change(batch.id, (before) => ({ ...before, ended_at }))
  if (isOpen || members.every(({ order }) => order === null)) return
  await journal.record({
    ...SYSTEM_EVENT,
    kind: 'batch.ended',
    subject_kind: 'batch',
    subject_id: batch.id,
    summary: `${nameBatch(batch)} has ended: ${nameCounts(counts)}`,
    details: { armed_by: batch.by.actor, ...counts },
  })
}

/** `41 done, 3 failed` */
const nameCounts = (counts: BatchCounts): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${state}`)
    .join(', ')
