/** What becomes of the wish to write only what differs, for one flash. */
import type { DeltaState } from '../inventory/rules/run.ts'
import type { FlashPlan } from './rules/flash.ts'
import { FORMATS } from '../image/rules/format.ts'
import type { FrameMap } from '../image/rules/frame-map.ts'
import type { Device } from '../disk/device.ts'
import { createComparison, type Comparison } from './comparison.ts'

export interface Delta {
  /** Null: nothing is compared. */
  readonly comparison: Comparison | null
  /** For the first event of the write; empty where nobody asked. */
  report(): { readonly delta?: DeltaState }
}

/** Of a flash that was asked for it. `held`: the disk, where it can be compared. */
export function planDelta(plan: FlashPlan, map: FrameMap | null, held: Device | null): Delta {
  if (map === null || map.indexSha256 === null || held === null) {
    const isUntrusted = plan.sha256 !== null && plan.indexSha256 === null
    const delta =
      isUntrusted && FORMATS[plan.image.format].entered === 'at-frames' ? 'untrusted' : 'no-index'
    return { comparison: null, report: () => ({ delta }) }
  }
  const comparison = createComparison(held, map)
  return {
    comparison,
    report: () => ({
      delta: comparison.isWorthwhile() === false ? 'mostly-different' : 'compared',
    }),
  }
}
