/** An image in frames as `flasher pack` and `flasher capture` make it: its name, and what they say of it. */
import { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration } from '#kit/foundation/rate.ts'
import { renderExactSize } from '#kit/foundation/size.ts'
import type { Packed } from '#engine/pack/packer.ts'
import type { DocumentFields } from './rules/envelope.ts'

type PackedImage = Omit<Packed, 'image'>

export function requireFramesName(output: string): void {
  if (output.endsWith('.img.zst')) return
  throw new Fault('misuse', `--output ${output} must end in .img.zst`, {
    hint: 'The name tells every program what the file holds.',
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
