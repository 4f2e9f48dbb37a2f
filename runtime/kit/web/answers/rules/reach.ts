/** Which machines a person sees: those with one of the labels of their scope, or all of them. */
import type { Role } from './rights.ts'

/** The labels of which a machine has one, spelled alike; null: all machines are seen, labelled or not. */
export type Reach = readonly string[] | null

/** What a person has, as their row, their session or their token says. */
interface Scoped {
  readonly role: Role | null
  /** Their scope; null: they have none. */
  readonly labels: Reach
}

/** Decides which machines a person sees. Whoever administrates has no scope. */
export const reachOf = ({ role, labels }: Scoped): Reach =>
  role === 'administrate' ? null : labels

/** Says whether machines with these labels are seen. */
export const sees = (reach: Reach, labels: readonly string[]): boolean =>
  reach === null || reach.some((label) => labels.includes(label))

/** Says whether two people with these scopes see the same machines, whatever labels these have. */
export const isSameReach = (one: Reach, other: Reach): boolean =>
  one === null || other === null
    ? one === other
    : one.length === other.length && one.every((label) => other.includes(label))
