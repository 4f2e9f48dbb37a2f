/** The folder that a captured image is written to: that of a stick is read-only but while one is. */
import { access, constants, realpath, statfs } from 'node:fs/promises'
import { Fault } from '../../kit/foundation/fault.ts'
import { systemCodeOf } from '../../kit/foundation/system-error.ts'
import { isOnStick, unlockStick } from '../disk/sticks.ts'
import type { Shell } from '../../kit/host/shell.ts'

/** The room there. A Fault where the folder is missing, or nothing can be written there. */
export async function checkFolder(folder: string): Promise<{ readonly freeBytes: number }> {
  const { bavail, bsize } = await statfs(folder).catch((cause: unknown) => {
    throw new Fault('input-missing', `there is no folder ${folder}`, { cause })
  })
  if ((await isReadOnly(folder)) && !isOnStick(await realpath(folder))) {
    throw new Fault('write-failed', `${folder} is on a file system that is mounted read-only`, {
      hint: 'Choose another folder, or mount it so that it can be written.',
    })
  }
  return { freeBytes: bavail * bsize }
}

/** It can be written until this is disposed of. */
export async function openFolder(shell: Shell, folder: string): Promise<AsyncDisposable> {
  const isLocked = (await isReadOnly(folder)) && isOnStick(await realpath(folder))
  return isLocked ? await unlockStick(shell) : { [Symbol.asyncDispose]: async () => {} }
}

const isReadOnly = (folder: string): Promise<boolean> =>
  access(folder, constants.W_OK).then(
    () => false,
    (thrown: unknown) => systemCodeOf(thrown) === 'EROFS',
  )
