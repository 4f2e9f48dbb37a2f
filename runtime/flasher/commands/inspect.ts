/** `flasher inspect image`. */
import { createImages } from '#engine/image/images.ts'
import { createShell } from '#kit/host/shell.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { detectFormat } from '#engine/image/rules/format.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { recogniseFormat } from '#engine/image/content/recognised-image.ts'
import { createDecoders, type Decoders } from '#engine/image/formats.ts'
import { openFileSource } from '#engine/image/sources/file-source.ts'
import { untilAborted } from '#kit/host/watch.ts'
import { renderRecord } from '#kit/terminal/text/table.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import { renderImageFields } from './rules/list-tables.ts'
import type { CommandSession } from './session.ts'

/** Rejects with a Fault where the image cannot be read. */
export async function inspectImage({
  given,
  environment,
  json,
  document,
}: CommandSession): Promise<number> {
  const [path = ''] = given.positionals
  const { env, signal } = environment
  const shell = createShell({ env })
  const { inspect } = createImages({ shell })
  const format = await untilAborted(signal, recognise(path, createDecoders({ shell })))
  const image = await untilAborted(signal, inspect(path, format))
  if (json) document({ image })
  else environment.stdout.write(renderRecord(renderImageFields(image, given.switches.has('bytes'))))
  return SUCCESS
}

/** Null: the name tells the format, or this is no file, which the caller reports. */
async function recognise(path: string, decoders: Decoders): Promise<ImageFormat | null> {
  if (detectFormat(path) !== null) return null
  try {
    await using source = await openFileSource(path)
    return await recogniseFormat(source, decoders)
  } catch (thrown) {
    if (thrown instanceof Fault) return null
    throw thrown
  }
}
