/** A batch: one action on many machines as it is stored, where each of its machines is, and how they are counted. */
import { z } from 'zod'
import type { Mac } from '#kit/net/rules/mac.ts'

const time = z.iso.datetime({ offset: true })

export const BatchSchema = z.object({
  /** 12 hexadecimal digits. */
  id: z.string(),
  action: z.string(),
  /** When it was ordered, by whom and from where. */
  by: z.object({ actor: z.string(), ip: z.string().nullable(), at: time }),
  /** The name of the one image that its orders write; null: several, or none. */
  image: z.string().nullable(),
  /** A label or search that its machines have in common; null: nothing. */
  target: z.string().nullable(),
  machines: z.int(),
  /** When the last of its machines was changed; null: under way, or cut off. */
  acted_at: time.nullable(),
  /** Since when its waiting machines boot their disks; null: not paused. */
  paused_at: time.nullable(),
  /** Who resumed it, and answers for it since; null: who ordered it. */
  resumed_by: z.string().nullable().default(null),
  /** When nothing more was to come; null: something is, or nobody has looked yet. */
  ended_at: time.nullable().default(null),
})
export type Batch = Readonly<z.output<typeof BatchSchema>>

/** `replaced`: it got another order before it was done. `undone`: without an order to disarm. */
export const MEMBER_STATES = [
  'done',
  'failed',
  'running',
  'waiting',
  'paused',
  'disarmed',
  'replaced',
  'refused',
  'undone',
] as const
export type MemberState = (typeof MEMBER_STATES)[number]

export const MemberSchema = z.object({
  /** The name of its order; null: the action was done at once, or refused. */
  order: z.string().nullable(),
  /** Null: not refused. */
  refusal: z.string().nullable(),
  /** What became of it when it got another order or was undone; null: neither. */
  left: z.enum(MEMBER_STATES).nullable(),
})
export type StoredMember = Readonly<z.output<typeof MemberSchema>>

export interface BatchMember extends StoredMember {
  readonly mac: Mac
}

/** A machine's record about its order, and the one before. */
export interface OrderFacts {
  readonly order: string
  /** It came with this batch, whatever the batch has stored of it. */
  readonly isOwn: boolean
  readonly isFinished: boolean
  readonly isDisarmed: boolean
  readonly hasFailed: boolean
  readonly hasBegun: boolean
  readonly isPaused: boolean
  /** The previous order, if its end was reported; else null. */
  readonly finishedBefore: string | null
  /** It gets its next order by itself when one has ended. */
  readonly repeats: boolean
}

/** `facts` null: the machine was deleted. */
export function decideMember(
  { order, refusal, left }: StoredMember,
  facts: OrderFacts | null,
): MemberState {
  if (refusal !== null) return 'refused'
  if (order === null) return left ?? 'done'
  if (facts?.isOwn === true) return decideOwn(facts)
  if (left !== null) return left
  if (facts === null) return 'replaced'
  return facts.order === order ? decideOwn(facts) : decideFormer(order, facts)
}

/** An order that a person takes away is noted in `left`; here it ended and others followed. */
const decideFormer = (order: string, { repeats, finishedBefore }: OrderFacts): MemberState =>
  repeats || finishedBefore === order ? 'done' : 'replaced'

function decideOwn(facts: OrderFacts): MemberState {
  if (facts.isFinished) return 'done'
  if (facts.isDisarmed) return 'disarmed'
  if (facts.hasFailed) return 'failed'
  if (facts.hasBegun) return 'running'
  return facts.isPaused ? 'paused' : 'waiting'
}

export type BatchCounts = Readonly<Record<MemberState, number>>

export function countMembers(states: Iterable<MemberState>): BatchCounts {
  const counts: Record<MemberState, number> = {
    done: 0,
    failed: 0,
    running: 0,
    waiting: 0,
    paused: 0,
    disarmed: 0,
    replaced: 0,
    refused: 0,
    undone: 0,
  }
  for (const state of states) counts[state] += 1
  return counts
}

export const isOpen = ({ running, waiting, paused }: BatchCounts): boolean =>
  running + waiting + paused > 0

/** `2.4.30 to rack-03`, or the action if no image is written. */
export const nameBatch = ({ action, image, target }: Pick<Batch, 'action' | 'image' | 'target'>) =>
  target === null ? (image ?? action) : `${image ?? action} to ${target}`

interface Labelled {
  readonly labels: readonly string[]
}

/** Prefers labels that no other machine has: they name the batch best. Null: none in common. */
export function findCommonLabel(
  batch: readonly Labelled[],
  fleet: readonly Labelled[],
): string | null {
  const [first, ...others] = batch
  if (first === undefined) return null
  const common = first.labels.filter((label) =>
    others.every(({ labels }) => labels.includes(label)),
  )
  const rarity = (label: string) => fleet.filter(({ labels }) => labels.includes(label)).length
  const [rarest] = common
    .map((label) => ({ label, machines: rarity(label) }))
    .toSorted((a, b) => a.machines - b.machines)
  return rarest?.label ?? null
}
