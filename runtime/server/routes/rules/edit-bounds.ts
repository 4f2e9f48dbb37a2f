/** Decides what somebody with bounds may edit: what they see, and no label that is a scope or has a password. */
import { canSee, type Bounds } from '#kit/web/answers/rules/rights.ts'

export interface EditBounds<M> {
  /** Machines they do not see do not exist for them. */
  canSee(machine: M): boolean
  readonly adds: boolean
  /** `before` null: a new machine. Null: allowed. */
  refuse(before: M | null, after: M): string | null
}

interface EditBoundsDependencies<M> {
  labelsOf(machine: M): readonly string[]
  /** Labels that are scopes of people now, or that their provider gives them. */
  listScopeLabels(): readonly string[]
  listSecretLabels(): readonly string[]
}

/** People with a scope add no machine: a new one has no label yet. */
export function createEditBounds<M>(
  { reach, administrates }: Bounds,
  { labelsOf, listScopeLabels, listSecretLabels }: EditBoundsDependencies<M>,
): EditBounds<M> {
  return {
    canSee: (machine) => canSee(reach, labelsOf(machine)),
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
const A_SECRET = 'has a password for BMCs'
const fixed = (label: string, why: string): string =>
  `The label ${label} ${why}. Only an administrator can add or remove it.`
