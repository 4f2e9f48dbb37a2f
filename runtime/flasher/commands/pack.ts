/** `flasher pack`: makes a `.img.zst` that can be entered anywhere. */
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { packImage, type PackOrder, type Packed } from '#engine/pack/packer.ts'
import { createProgress } from '#flasher/text/progress.ts'
import { SUCCESS, type DocumentFields } from './rules/exit-codes.ts'
import type { CommandSession } from './session.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration, renderExactSize } from '#kit/foundation/size.ts'

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

// An image in frames as `flasher pack` and `flasher capture` make it: its name, and what they say of it.

type PackedImage = Omit<Packed, 'image'>

export function requireFramesName(output: string): void {
  if (output.endsWith('.img.zst')) return
  throw new Fault('misuse', `--output ${output} must end in .img.zst`, {
    hint: 'Programs recognise the format by this ending.',
  })
}

export const packedFields = (path: string, packed: PackedImage): DocumentFields => ({
  path,
  size_bytes: packed.storedBytes,
  virtual_size_bytes: packed.imageBytes,
  frames: packed.frames,
  zero_frames: packed.zeroFrames,
  sha256: packed.sha256,
  index_sha256: packed.indexSha256,
  image_sha256: packed.imageSha256,
  seconds: Math.round(packed.seconds * 1000) / 1000,
})

export const renderPacked = (path: string, packed: PackedImage, frames: string): string => `\
${printable(path)}: ${renderExactSize(packed.storedBytes)}, ${renderExactSize(packed.imageBytes)} unpacked${frames}, in ${renderDuration(packed.seconds)}
sha256        ${packed.sha256}
index_sha256  ${packed.indexSha256}
`
