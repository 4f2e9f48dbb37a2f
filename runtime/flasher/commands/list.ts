/** `flasher list disks` and `flasher list images`. */
import { DEFAULT_IMAGE_ROOT } from '#appliance/disk-images.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { resolveImageRoot } from '#engine/image/image-folder.ts'
import { createDisks } from '#engine/disk/disks.ts'
import { isFolder } from '#kit/host/folders.ts'
import { createImages } from '#engine/image/images.ts'
import { createShell } from '#kit/host/shell.ts'
import { untilAborted } from '#kit/host/watch.ts'
import { renderTable } from '#kit/terminal/text/table.ts'
import { tableRoomOf } from '#kit/terminal/text/terminal-style.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import {
  DISK_COLUMNS,
  imageColumns,
  renderDiskCells,
  renderImageCells,
} from './rules/list-tables.ts'
import type { CommandSession } from './session.ts'

/** Rejects with a Fault where the disks cannot be listed. */
export async function listDisks({
  given,
  environment,
  json,
  document,
}: CommandSession): Promise<number> {
  const { list } = createDisks({ shell: createShell({ env: environment.env }) })
  const disks = await untilAborted(environment.signal, list())
  if (json) {
    document({ disks })
    return SUCCESS
  }
  const { stdout, env } = environment
  const isExact = given.switches.has('bytes')
  const rows = disks.map((disk) => renderDiskCells(disk, isExact))
  stdout.write(renderTable(rows, DISK_COLUMNS, tableRoomOf(stdout, env)))
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
      hint: 'name another one with --image-root, or make it',
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
    log.note(`${why}; --image-root names another`)
  }
  return SUCCESS
}
