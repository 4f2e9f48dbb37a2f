/** `flasher pack`: makes a `.img.zst` that can be entered anywhere. */
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { packImage, type PackOrder } from '#engine/pack/packer.ts'
import { createProgress } from '#flasher/text/progress.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import { packedFields, renderPacked, requireFramesName } from './packed-image.ts'
import type { CommandSession } from './session.ts'

/** Rejects with a Fault as `packImage` does. */
export async function pack({
  given,
  environment,
  json,
  style,
  document,
}: CommandSession): Promise<number> {
  const order = parseOrder(given)
  const progress = createProgress('text', { ...environment, style, storedBytes: () => null })
  const onProgress = style.tty ? progress.show : () => undefined
  const { signal } = environment
  const packed = await packImage(environment, order, { signal, onProgress }).finally(progress.clear)
  const frames = `\n${packed.frames} frames, ${packed.zeroFrames} of them zeros`
  if (json) document({ packed: packedFields(order.output, packed) })
  else environment.stdout.write(renderPacked(order.output, packed, frames))
  return SUCCESS
}

function parseOrder({ positionals, values }: CommandSession['given']): PackOrder {
  const { output = '', level = '', sha256 = null } = values
  requireFramesName(output)
  const [image = ''] = positionals
  const format = IMAGE_FORMATS.find((name) => name === values['format']) ?? null
  return {
    image,
    format,
    // Standard input has no name, so that its format has to be given.
    anyContent: format !== null && image !== '-',
    sha256: sha256?.toLowerCase() ?? null,
    output,
    level: Number(level),
  }
}
