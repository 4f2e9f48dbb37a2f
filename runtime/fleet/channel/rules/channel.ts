/** A channel: a name that points to one image, so that `stable` is what is flashed until somebody moves it. */
import { z } from 'zod'

export const MAX_CHANNELS = 200
export const MAX_NOTE_CHARACTERS = 500

/** Part of addresses, too. */
export const ChannelNameSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'at most 64 letters, digits and . _ - that begin with a letter or a digit',
  )

export const ChannelFieldsSchema = z.strictObject({
  bty_image_ref: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'the ref of a catalog entry: 64 hexadecimal digits, lower case'),
  note: z.string().trim().max(MAX_NOTE_CHARACTERS).default(''),
})

export type ChannelFields = Readonly<z.infer<typeof ChannelFieldsSchema>>

export const ChannelRecordSchema = ChannelFieldsSchema.extend({
  /** Who pointed it to this image, and when (ISO time). */
  moved_at: z.string(),
  moved_by: z.string(),
})

export interface ImageChannel extends Readonly<z.infer<typeof ChannelRecordSchema>> {
  readonly name: string
}

/** Another note moves nothing. `before` null: new. */
export function editChannel(
  before: ImageChannel | null,
  name: string,
  fields: ChannelFields,
  by: { readonly actor: string; readonly at: string },
): ImageChannel {
  const isMoved = before?.bty_image_ref !== fields.bty_image_ref
  return {
    name,
    ...fields,
    moved_at: isMoved ? by.at : before.moved_at,
    moved_by: isMoved ? by.actor : before.moved_by,
  }
}
