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
import type { Machine } from '../rules/machine.ts'
import {
  decideLeaving,
  describeOrder,
  findNewOrder,
  isOrderOf,
  isUnderWay,
} from './rules/order-facts.ts'

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
    listOpen(): readonly BatchView[] {
      const fleet = machines.peekAll()
      const ids = new Set(fleet.filter(isUnderWay).flatMap(({ cycle: { batch } }) => batch ?? []))
      const isCapturing = fleet.some(({ capture }) => isPending(capture))
      return batches
        .list()
        .filter(({ id, action }) => ids.has(id) || (isCapturing && action === 'capture'))
        .map((batch) => view(batch))
        .filter((each) => each.isOpen)
    },
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
    async leave(before, after, how) {
      const { batch, started_at } = before.cycle
      if (batch === null || after?.cycle.started_at === started_at) return
      await batches.leave(batch, before.mac, started_at, decideLeaving(before, how))
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
