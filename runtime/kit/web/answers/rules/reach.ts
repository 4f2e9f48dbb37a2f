/** Which machines a person sees: those with one of the labels of their scope, or all of them. */
import type { Role } from './rights.ts'

/** The labels of which a machine has one, spelled alike; null: all machines are seen, labelled or not. */
export type Reach = readonly string[] | null

/** What a person has, as their row, their session or their token says. */
interface Scoped {
  readonly role: Role | null
  /** Null: they have none. */
  readonly labels: Reach
}

/** Whoever administrates has no scope. */
export const reachOf = ({ role, labels }: Scoped): Reach =>
  role === 'administrate' ? null : labels

export const sees = (reach: Reach, labels: readonly string[]): boolean =>
  reach === null || reach.some((label) => labels.includes(label))

/** Whatever labels the machines have. */
export const isSameReach = (one: Reach, other: Reach): boolean =>
  one === null || other === null
    ? one === other
    : one.length === other.length && one.every((label) => other.includes(label))

export interface Bounds {
  /** Null: all machines. */
  readonly reach: Reach
  /** Whether they may change the labels that are scopes of people. */
  readonly administrates: boolean
}

export type RouteReach =
  /** It is about one machine, which is not there for who does not see it. */
  | 'machine'
  /** It answers with several machines, or acts on several: on those that are seen. */
  | 'list'
  /** It says nothing of machines. */
  | 'shared'
  /** It is about all machines at once, so that nobody with a scope passes. */
  | 'whole'

/** Whatever their role; what they see there is another matter. */
export const passesReach = (reach: Reach, wanted: RouteReach): boolean =>
  reach === null || wanted !== 'whole'
