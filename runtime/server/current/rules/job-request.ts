/** Current line: the bodies of `POST /workers/backups` and `POST /boot/releases`. */
import { z } from 'zod'
import { ReleaseTagSchema } from '../../../fleet/boot/rules/release.ts'

/** An absent body asks for a backup by hand, as an empty one does. */
export const BackupRequestSchema = z.strictObject({
  trigger: z.enum(['manual', 'scheduled']).default('manual'),
})

/** The settings name the tag that counts where this is left out. */
export const ReleaseRequestSchema = z.strictObject({ tag: ReleaseTagSchema.optional() })
