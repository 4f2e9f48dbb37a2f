/** Current line: the body of `POST /boot/releases`. */
import { z } from 'zod'
import { ReleaseTagSchema } from '../../../core/boot/release.ts'

/** Without a tag it is the one that the settings name. */
export const ReleaseRequestSchema = z.strictObject({ tag: ReleaseTagSchema.optional() })
