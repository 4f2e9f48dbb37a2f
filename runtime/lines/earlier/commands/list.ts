/** `flasher list disks` and `flasher list images`. */
import { resolveImageRoot } from '../../../core/image/image.ts'
import { createDisks } from '../../../services/disk/disks.ts'
import { isFolder } from '../../../services/image/image-folder.ts'
import { createImages } from '../../../services/image/images.ts'
import { createShell } from '../../../services/host/shell.ts'
import { untilAborted } from '../../../services/host/watch.ts'
import { renderTable } from '../../../terminal/text/table.ts'
import { SUCCESS } from '../rules/exit-codes.ts'
import type { Session } from './session.ts'

/** The spec's columns; the JSON rows hold more. */
const DISK_COLUMNS = ['path', 'size', 'tran', 'vendor', 'model', 'serial', 'removable'] as const
const IMAGE_COLUMNS = ['name', 'format', 'size_bytes'] as const

export async function listDisks({ environment, json, document }: Session): Promise<number> {
  const { list } = createDisks({ shell: createShell({ env: environment.env }) })
  const disks = await untilAborted(environment.signal, list())
  if (json) document({ disks })
  else environment.stdout.write(renderTable(disks, DISK_COLUMNS))
  return SUCCESS
}

export async function listImages(session: Session): Promise<number> {
  const { given, environment, json, log, document } = session
  const root = resolveImageRoot(given.values['image-root'], environment.env)
  const { list } = createImages({ shell: createShell({ env: environment.env }) })
  const images = await untilAborted(environment.signal, list(root))
  if (json) {
    document({ image_root: root, images })
    return SUCCESS
  }
  environment.stdout.write(renderTable(images, IMAGE_COLUMNS))
  if (images.length === 0) {
    const why = (await isFolder(root)) ? `no images in ${root}` : `there is no folder ${root}`
    log.note(`${why}; --image-root names another`)
  }
  return SUCCESS
}
