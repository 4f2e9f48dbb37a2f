/** `flasher pack`: makes a `.img.zst` that can be entered anywhere, for smaller disks with `--shrink`. */
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { packImage, type PackOrder, type Packed } from '#engine/pack/packer.ts'
import { shrinkImage, type ShrinkStage, type ShrunkImage } from '#engine/shrink/shrinker.ts'
import { createProgress } from '#flasher/text/progress.ts'
import { SUCCESS, type DocumentFields } from './rules/exit-codes.ts'
import type { CommandSession } from './session.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration, renderExactSize, renderSize } from '#kit/foundation/size.ts'

/** Rejects with a Fault as `packImage` and `shrinkImage` do. */
export async function pack(session: CommandSession): Promise<number> {
  const { given, environment, json, style, document } = session
  const order = parseOrder(given)
  if (given.switches.has('shrink')) return await shrink(session, order)
  const progress = createProgress('text', { ...environment, style, storedBytes: () => null })
  const onProgress = style.tty ? progress.show : () => undefined
  const { signal } = environment
  const packed = await packImage(environment, order, { signal, onProgress }).finally(progress.clear)
  const frames = `\n${packed.frames} frames, ${packed.zeroFrames} of them zeros`
  if (json) document({ packed: packedFields(order.output, packed) })
  else environment.stdout.write(renderPacked(order.output, packed, frames))
  return SUCCESS
}

async function shrink(session: CommandSession, order: PackOrder): Promise<number> {
  const { given, environment, json, style, log, document } = session
  const reservePercent = Number.parseInt(given.values['reserve'] ?? '', 10)
  const progress = createProgress('text', { ...environment, style, storedBytes: () => null })
  const { signal } = environment
  const options = {
    signal,
    onStage(stage: ShrinkStage) {
      progress.clear()
      log.line(renderStage(stage))
    },
    onProgress: style.tty ? progress.show : () => undefined,
  }
  const shrunk = await shrinkImage(environment, { ...order, reservePercent }, options).finally(
    progress.clear,
  )
  const { packed } = shrunk
  if (json) {
    document({ packed: packedFields(order.output, packed), shrunk: shrunkFields(shrunk) })
    return SUCCESS
  }
  for (const note of [...shrunk.stays, ...shrunk.notes]) log.note(note)
  environment.stdout.write(renderShrunk(shrunk) + renderPacked(order.output, packed, ''))
  return SUCCESS
}

function renderStage(stage: ShrinkStage): string {
  if (stage.stage === 'shrinking') return `Shrinking partition ${stage.number} (${stage.words}).`
  return { unpacking: UNPACKING, comparing: COMPARING, packing: 'Packing the image.' }[stage.stage]
}

const UNPACKING = 'Making a copy of the image.'
const COMPARING = 'Putting the image together and comparing it with its source.'

const shrunkFields = ({ oldBytes, places, stays, notes }: ShrunkImage) => ({
  was_size_bytes: oldBytes,
  partitions: places.map(({ number, words, to, from, bytes, oldBytes: wasBytes }) => ({
    number,
    file_system: words,
    offset_bytes: to,
    was_offset_bytes: from,
    size_bytes: bytes,
    was_size_bytes: wasBytes,
  })),
  kept: stays,
  notes,
})

const renderShrunk = ({ places }: ShrunkImage): string =>
  places
    .map(({ number, words, from, to, bytes, oldBytes }) => {
      const sizes =
        bytes < oldBytes ? `${renderSize(oldBytes)} to ${renderSize(bytes)}` : renderSize(bytes)
      return `partition ${number} (${words}): ${sizes}${from === to ? '' : ', moved'}\n`
    })
    .join('')

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
