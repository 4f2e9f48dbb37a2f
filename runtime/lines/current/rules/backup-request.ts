/** Current line: the body of `POST /workers/backups`. */
import { z } from 'zod'

/** An absent body asks for a backup by hand, as an empty one does. */
export const BackupRequestSchema = z.strictObject({
  trigger: z.enum(['manual', 'scheduled']).default('manual'),
})
