/** Current line: what `POST /boot/releases` takes. */
import { z } from 'zod'
import { listFieldErrors, type FieldError } from '../../../core/foundation/field-error.ts'
import { ReleaseTagSchema } from '../../../core/boot/release.ts'
import { accept, refuse, type Result } from '../../../core/foundation/result.ts'

const ReleaseRequestSchema = z.strictObject({ tag: ReleaseTagSchema.optional() })

/** For the API document. */
export const RELEASE_REQUEST = z.toJSONSchema(ReleaseRequestSchema, { io: 'input' })

/** The tag, or null for the one that the settings name; `{}` and no body at all ask for that. */
export function parseReleaseRequest(body: unknown): Result<string | null, readonly FieldError[]> {
  const parsed = ReleaseRequestSchema.safeParse(body ?? {})
  return parsed.success ? accept(parsed.data.tag ?? null) : refuse(listFieldErrors(parsed.error))
}
