/** Current line: what `POST /workers/backups` takes. */
import { z } from 'zod'
import { listFieldErrors, type FieldError } from '../../../core/foundation/field-error.ts'
import { accept, refuse, type Result } from '../../../core/foundation/result.ts'

const BackupRequestSchema = z.strictObject({
  trigger: z.enum(['manual', 'scheduled']).default('manual'),
})

type BackupRequest = z.infer<typeof BackupRequestSchema>

/** For the API document. */
export const BACKUP_REQUEST = z.toJSONSchema(BackupRequestSchema, { io: 'input' })

/** An absent body asks for a backup by hand, as an empty one does. */
export function parseBackupRequest(body: unknown): Result<BackupRequest, readonly FieldError[]> {
  const parsed = BackupRequestSchema.safeParse(body ?? {})
  return parsed.success ? accept(parsed.data) : refuse(listFieldErrors(parsed.error))
}
