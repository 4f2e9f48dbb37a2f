/** An image as a form offers it, by itself or by the channel that points to it, as the value of one field. */

export interface ImageChoice {
  readonly channel: string | null
  /** Empty: no image. */
  readonly ref: string
}

/** `ab12…` or `stable@ab12…`: with the image, so that nobody gets another one than they saw. */
export const renderImageChoice = ({ channel, ref }: ImageChoice): string =>
  channel === null ? ref : `${channel}@${ref}`

export function parseImageChoice(value: string): ImageChoice {
  const at = value.indexOf('@')
  return at === -1
    ? { channel: null, ref: value.trim() }
    : { channel: value.slice(0, at).trim(), ref: value.slice(at + 1).trim() }
}
