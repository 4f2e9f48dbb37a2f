/** `flasher pack`: makes a `.img.zst` that can be entered anywhere. */
import { Fault } from '../../../core/foundation/fault.ts'
import { renderDuration } from '../../../core/foundation/rate.ts'
import { renderExactSize } from '../../../core/foundation/size.ts'
import { IMAGE_FORMATS } from '../../../core/image/image.ts'
import { packImage, type Packed, type PackOrder } from '../../../services/pack/packer.ts'
import { createProgress } from '../../../terminal/text/progress.ts'
import type { Fields } from '../rules/envelope.ts'
import { SUCCESS } from '../rules/exit-codes.ts'
import type { Session } from './session.ts'

export async function pack({ given, environment, json, look, document }: Session): Promise<number> {
  const order = parseOrder(given)
  const progress = createProgress('text', { ...environment, look, storedBytes: () => null })
  const onProgress = look.live ? progress.show : () => undefined
  const { signal } = environment
  const packed = await packImage(environment, order, { signal, onProgress }).finally(progress.clear)
  if (json) document({ packed: packedFields(order, packed) })
  else environment.stdout.write(renderPacked(order, packed))
  return SUCCESS
}

function parseOrder({ positionals, values }: Session['given']): PackOrder {
  const { output = '', level = '', sha256 = null } = values
  if (!output.endsWith('.img.zst')) {
    throw new Fault('misuse', `--output ${output} must end in .img.zst`, {
      hint: 'The name tells every program what the file holds.',
    })
  }
  const [image = ''] = positionals
  const format = IMAGE_FORMATS.find((name) => name === values['format']) ?? null
  return { image, format, sha256: sha256?.toLowerCase() ?? null, output, level: Number(level) }
}

const packedFields = ({ output }: PackOrder, packed: Packed): Fields => ({
  path: output,
  size_bytes: packed.storedBytes,
  virtual_size_bytes: packed.imageBytes,
  frames: packed.frames,
  zero_frames: packed.zeroFrames,
  sha256: packed.sha256,
  index_sha256: packed.indexSha256,
  image_sha256: packed.imageSha256,
  seconds: Math.round(packed.seconds * 1000) / 1000,
})

const renderPacked = ({ output }: PackOrder, packed: Packed): string => `\
${output}: ${renderExactSize(packed.storedBytes)}, ${renderExactSize(packed.imageBytes)} unpacked
${packed.frames} frames, ${packed.zeroFrames} of them zeros, in ${renderDuration(packed.seconds)}
sha256        ${packed.sha256}
index_sha256  ${packed.indexSha256}
`
