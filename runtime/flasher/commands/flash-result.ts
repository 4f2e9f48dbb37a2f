/** Says what a flash has written, for people and as fields of a document. */
import type { FlashOutcome } from '../../engine/flash/rules/outcome.ts'
import { renderWhole } from '../../engine/flash/rules/progress-text.ts'
import { renderDuration } from '../../kit/foundation/rate.ts'
import { renderExactSize } from '../../kit/foundation/size.ts'
import type { DocumentFields } from './rules/envelope.ts'

type DoneFlash = Extract<FlashOutcome, { kind: 'done' }>

export function renderDone(done: DoneFlash): string {
  const { plan, bytesWritten, bytesKept, seconds, verified, warnings = [] } = done
  const readBack = verified ? 'verified' : 'not verified'
  const why = renderWhole(done)
  const kept = bytesKept ? ` ${renderExactSize(bytesKept)} of it was already on the disk.` : ''
  return `Done. Wrote ${renderExactSize(bytesWritten)} to ${plan.target.path} in ${renderDuration(seconds)}, ${readBack}.${kept}${why === null ? '' : ` ${why}`}\n${warnings.map((words) => `Warning: ${words}\n`).join('')}`
}

export const resultFields = ({
  plan,
  bytesWritten,
  bytesKept = null,
  delta = null,
  seconds,
  verified,
  warnings = [],
}: DoneFlash): DocumentFields => ({
  result: {
    bytes_written: bytesWritten,
    ...(bytesKept === null ? {} : { bytes_kept: bytesKept }),
    ...(delta === null ? {} : { delta }),
    seconds: Math.round(seconds * 1000) / 1000,
    verified,
    ...(warnings.length === 0 ? {} : { warnings }),
    sha256: plan.sha256,
  },
})
