/** Decides what somebody with bounds may edit: what they see, and no label that is the scope of a person. */
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
  /** Lists the labels that are scopes of people at this moment. */
  listScopeLabels(): ReadonlySet<string>
}

/** Makes the bounds of edits. Whoever has a scope adds no machine: what is new has no label yet. */
export function createEditBounds<M>(
  { reach, administrates }: Bounds,
  { labelsOf, listScopeLabels }: EditBoundsDependencies<M>,
): EditBounds<M> {
  return {
    sees: (machine) => sees(reach, labelsOf(machine)),
    adds: reach === null,
    refuse(before, after) {
      if (administrates) return null
      const [former, next] = [before === null ? [] : labelsOf(before), labelsOf(after)]
      if (former === next) return null
      const fixed = listScopeLabels()
      const changed = [...former, ...next].find(
        (label) =>
          (fixed.has(label) || reach?.includes(label) === true) &&
          former.includes(label) !== next.includes(label),
      )
      return changed === undefined ? null : describeFixed(changed)
    },
  }
}

const describeFixed = (label: string): string =>
  `The label ${label} is the scope of people: it takes the role administrate to give it to a machine or take it away.`
