/** Says what a flash has written, for people and as fields of a document. */
import type { FlashPlan } from '../../../core/flash/flash.ts'
import { renderDuration } from '../../../core/foundation/rate.ts'
import { renderExactSize } from '../../../core/foundation/size.ts'
import type { Fields } from '../rules/envelope.ts'

export function renderDone({ target, verify }: FlashPlan, bytes: number, seconds: number): string {
  const readBack = verify === 'none' ? 'not verified' : 'verified'
  return `Done. Wrote ${renderExactSize(bytes)} to ${target.path} in ${renderDuration(seconds)}, ${readBack}.\n`
}

export const resultFields = (
  { verify, sha256 }: FlashPlan,
  bytes: number,
  seconds: number,
): Fields => ({
  result: {
    bytes_written: bytes,
    seconds: Math.round(seconds * 1000) / 1000,
    verified: verify !== 'none',
    sha256,
  },
})
