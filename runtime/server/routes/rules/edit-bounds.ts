/** Decides what somebody with bounds may edit: what they see, and no label that is a scope or has a password. */
import { sees, type Bounds } from '../../../kit/web/answers/rules/reach.ts'

/** What somebody may edit. */
export interface EditBounds<M> {
  /** Whether they see a machine; what they do not see is not there. */
  sees(machine: M): boolean
  /** Whether they may add machines. */
  readonly adds: boolean
  /** Says why a machine may not become another; `before` null: it is new. Null: it may. */
  refuse(before: M | null, after: M): string | null
}

interface EditBoundsDependencies<M> {
  labelsOf(machine: M): readonly string[]
  /** Lists the labels that are scopes of people at this moment, or are given to them by their provider. */
  listScopeLabels(): readonly string[]
  /** Lists the labels that have the password of BMCs. */
  listSecretLabels(): readonly string[]
}

/** Makes the bounds of edits. Whoever has a scope adds no machine: what is new has no label yet. */
export function createEditBounds<M>(
  { reach, administrates }: Bounds,
  { labelsOf, listScopeLabels, listSecretLabels }: EditBoundsDependencies<M>,
): EditBounds<M> {
  return {
    sees: (machine) => sees(reach, labelsOf(machine)),
    adds: reach === null,
    refuse(before, after) {
      if (administrates) return null
      const [former, next] = [before === null ? [] : labelsOf(before), labelsOf(after)]
      if (former === next) return null
      const [scopes, secrets] = [new Set(listScopeLabels()), new Set(listSecretLabels())]
      for (const label of [...former, ...next]) {
        if (former.includes(label) === next.includes(label)) continue
        if (scopes.has(label) || reach?.includes(label) === true) return fixed(label, A_SCOPE)
        if (secrets.has(label)) return fixed(label, A_SECRET)
      }
      return null
    },
  }
}

const A_SCOPE = 'is the scope of people'
const A_SECRET = 'has the password of BMCs'
const fixed = (label: string, why: string): string =>
  `The label ${label} ${why}: it takes the role administrate to give it to a machine or take it away.`
