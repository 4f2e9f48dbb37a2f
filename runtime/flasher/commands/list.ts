/** `flasher list disks`, `flasher list images` and `flasher inspect image`. */
import { DEFAULT_IMAGE_ROOT, type ImageFormat } from '#appliance/disk-images.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { readFirmware } from '#engine/bootable/firmware.ts'
import { listFirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import { createImages } from '#engine/image/images.ts'
import { resolveImageRoot } from '#engine/image/image-folder.ts'
import { createDisks } from '#engine/disk/disks.ts'
import { isFolder } from '#kit/host/folders.ts'
import { createShell } from '#kit/host/shell.ts'
import { untilAborted } from '#kit/host/watch.ts'
import { renderTable, renderRecord } from '#kit/terminal/text/columns.ts'
import { tableRoomOf } from '#kit/terminal/text/terminal-style.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import {
  DISK_COLUMNS,
  imageColumns,
  renderDiskCells,
  renderImageCells,
  renderImageFields,
} from './rules/list-tables.ts'
import type { CommandSession } from './session.ts'
import { detectFormat } from '#engine/image/rules/format.ts'
import { recogniseFormat } from '#engine/image/image-inspection.ts'
import { createDecoders, type Decoders } from '#engine/image/formats.ts'
import { openFileSource } from '#engine/image/sources/source.ts'

/** Rejects with a Fault where the disks cannot be listed. */
export async function listDisks({
  given,
  environment,
  json,
  log,
  document,
}: CommandSession): Promise<number> {
  const { list } = createDisks({ shell: createShell({ env: environment.env }) })
  const [disks, firmware] = await Promise.all([
    untilAborted(environment.signal, list()),
    readFirmware(process.arch),
  ])
  if (json) {
    document({ disks, firmware })
    return SUCCESS
  }
  const { stdout, env } = environment
  const isExact = given.switches.has('bytes')
  const rows = disks.map((disk) => renderDiskCells(disk, isExact))
  stdout.write(renderTable(rows, DISK_COLUMNS, tableRoomOf(stdout, env)))
  if (firmware !== null) {
    const facts = listFirmwareFacts(firmware).map(([title, text]) => `${title}: ${text}`)
    log.note(`this machine's firmware. ${facts.join('; ')}`)
  }
  return SUCCESS
}

/** A missing default folder is no failure; a missing folder that was named is a Fault. */
export async function listImages(session: CommandSession): Promise<number> {
  const { given, environment, json, log, document } = session
  const root = resolveImageRoot(given.values['image-root'], environment.env)
  const { list } = createImages({ shell: createShell({ env: environment.env }) })
  const images = await untilAborted(environment.signal, list(root))
  const isMissing = images.length === 0 && !(await isFolder(root))
  if (isMissing && root !== DEFAULT_IMAGE_ROOT) {
    throw new Fault('source-broken', `there is no folder ${root}`, {
      hint: 'Create it, or name another one with --image-root.',
    })
  }
  if (json) {
    document({ image_root: root, images })
    return SUCCESS
  }
  const { stdout, env } = environment
  const columns = imageColumns(given.switches.has('bytes'))
  stdout.write(renderTable(images.map(renderImageCells), columns, tableRoomOf(stdout, env)))
  if (images.length === 0) {
    const why = isMissing ? `there is no folder ${root}` : `no images in ${root}`
    log.note(`${why}; choose another folder with --image-root`)
  }
  return SUCCESS
}

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
