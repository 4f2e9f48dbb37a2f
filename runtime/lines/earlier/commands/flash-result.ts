/** Says what a flash has written, for people and as fields of a document. */
import type { FlashOutcome } from '../../../core/flash/outcome.ts'
import { renderDuration } from '../../../core/foundation/rate.ts'
import { renderExactSize } from '../../../core/foundation/size.ts'
import type { Fields } from '../rules/envelope.ts'

type Done = Extract<FlashOutcome, { kind: 'done' }>

export function renderDone({ plan, bytesWritten, bytesKept, seconds, verified }: Done): string {
  const readBack = verified ? 'verified' : 'not verified'
  const kept = bytesKept ? ` ${renderExactSize(bytesKept)} of it was already on the disk.` : ''
  return `Done. Wrote ${renderExactSize(bytesWritten)} to ${plan.target.path} in ${renderDuration(seconds)}, ${readBack}.${kept}\n`
}

export const resultFields = ({
  plan,
  bytesWritten,
  bytesKept = null,
  seconds,
  verified,
}: Done): Fields => ({
  result: {
    bytes_written: bytesWritten,
    ...(bytesKept === null ? {} : { bytes_kept: bytesKept }),
    seconds: Math.round(seconds * 1000) / 1000,
    verified,
    sha256: plan.sha256,
  },
})
