/** Current line: what `POST /boot/releases` takes. */
import { z } from 'zod'
import { ReleaseTagSchema } from '../../../core/boot/release.ts'

/** Without a tag it is the one that the settings name. */
export const ReleaseRequestSchema = z.strictObject({ tag: ReleaseTagSchema.optional() })
