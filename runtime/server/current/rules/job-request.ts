/** Current line: the bodies of `POST /workers/backups` and `POST /boot/releases`. */
import { z } from 'zod'
import { ReleaseTagSchema } from '#fleet/boot/rules/release.ts'

/** An absent body is an empty one: a backup by hand. */
export const BackupRequestSchema = z.strictObject({
  trigger: z.enum(['manual', 'scheduled']).default('manual'),
})

/** Absent: the tag of the settings. */
export const ReleaseRequestSchema = z.strictObject({ tag: ReleaseTagSchema.optional() })
