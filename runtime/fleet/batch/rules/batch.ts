/** A batch: one action on many machines as it is stored, where each of its machines is, and how they are counted. */
import { z } from 'zod'
import type { Mac } from '../../../kit/net/rules/mac.ts'

const time = z.iso.datetime({ offset: true })

/** What is stored of a batch as a whole. */
export const BatchSchema = z.object({
  /** Ours, 12 hexadecimal digits. */
  id: z.string(),
  /** What was done to the machines, as the API names it. */
  action: z.string(),
  /** When it was ordered, by whom and from where. */
  by: z.object({ actor: z.string(), ip: z.string().nullable(), at: time }),
  /** The name of the one image that its orders write; null: they write several, or none. */
  image: z.string().nullable(),
  /** What its machines have in common, a label or the search that found them; null: nothing. */
  target: z.string().nullable(),
  /** How many machines were named. */
  machines: z.int(),
  /** When its last machine was acted on; null: that goes on, or was cut off. */
  acted_at: time.nullable(),
  /** The time since when its waiting machines boot their disks; null: it is not paused. */
  paused_at: time.nullable(),
  /** Who had it go on after it was paused, and answers for it since; null: who ordered it. */
  resumed_by: z.string().nullable().default(null),
  /** When nothing more of it was to come; null: something is, or nobody has looked yet. */
  ended_at: time.nullable().default(null),
})
export type Batch = Readonly<z.output<typeof BatchSchema>>

/** Where a machine of a batch is. `replaced`: it was given something else to do before it had come. */
export const MEMBER_STATES = [
  'done',
  'failed',
  'running',
  'waiting',
  'paused',
  'disarmed',
  'replaced',
  'refused',
] as const
export type MemberState = (typeof MEMBER_STATES)[number]

/** What is stored of each machine of a batch. */
export const MemberSchema = z.object({
  /** The order that it was given, by its name; null: the action was done at once, or refused. */
  order: z.string().nullable(),
  /** Why nothing was done to it; null: something was. */
  refusal: z.string().nullable(),
  /** What had become of its order when it was given another one; null: it has it still. */
  left: z.enum(MEMBER_STATES).nullable(),
})
export type StoredMember = Readonly<z.output<typeof MemberSchema>>

export interface BatchMember extends StoredMember {
  readonly mac: Mac
}

/** What the record of a machine says of the order that it has, and of the one before. */
export interface OrderFacts {
  readonly order: string
  /** It came with the batch that is asked about, whatever the batch has stored of it. */
  readonly isOwn: boolean
  readonly isFinished: boolean
  readonly isDisarmed: boolean
  readonly hasFailed: boolean
  readonly hasBegun: boolean
  readonly isPaused: boolean
  /** The order before, where its end was reported; null: it was not. */
  readonly finishedBefore: string | null
  /** It is given its next order by itself, as soon as one has ended. */
  readonly repeats: boolean
}

/** Decides where a machine of a batch is; `facts` null: the machine was deleted. */
export function decideMember(
  { order, refusal, left }: StoredMember,
  facts: OrderFacts | null,
): MemberState {
  if (refusal !== null) return 'refused'
  if (order === null) return 'done'
  if (facts?.isOwn === true) return decideOwn(facts)
  if (left !== null) return left
  if (facts === null) return 'replaced'
  if (facts.order !== order) {
    // An order that a person takes away is noted in `left`: here it has ended, and others have followed.
    return facts.repeats || facts.finishedBefore === order ? 'done' : 'replaced'
  }
  return decideOwn(facts)
}

function decideOwn(facts: OrderFacts): MemberState {
  if (facts.isFinished) return 'done'
  if (facts.isDisarmed) return 'disarmed'
  if (facts.hasFailed) return 'failed'
  if (facts.hasBegun) return 'running'
  return facts.isPaused ? 'paused' : 'waiting'
}

export type BatchCounts = Readonly<Record<MemberState, number>>

/** Counts the machines of a batch by where they are. */
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
  }
  for (const state of states) counts[state] += 1
  return counts
}

/** Says whether something of a batch is still to come. */
export const isOpen = ({ running, waiting, paused }: BatchCounts): boolean =>
  running + waiting + paused > 0

/** Returns what people call a batch: `2.4.30 to rack-03`, or the action where no image is written. */
export const nameBatch = ({ action, image, target }: Pick<Batch, 'action' | 'image' | 'target'>) =>
  target === null ? (image ?? action) : `${image ?? action} to ${target}`

interface Labelled {
  readonly labels: readonly string[]
}

/**
 * Says what all machines of a batch have in common: the labels that no other machine has first, as they
 * name the batch best. Null: they have none.
 */
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
