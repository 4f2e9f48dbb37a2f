/** Gives new files of the state directory the owner of that directory, also when root runs the command. */
import { chownSync, closeSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'

/** Only the server may read them. */
const PRIVATE = 0o600

export function touchFile(path: string): void {
  try {
    if (statSync(path, { throwIfNoEntry: false }) !== undefined) return
    closeSync(openSync(path, 'a', PRIVATE))
    adoptFile(path)
  } catch (cause) {
    throw new Fault('write-failed', `${path} cannot be made`, {
      hint: 'The state directory must exist and belong to the user that the server runs as.',
      cause,
    })
  }
}

/** Another user's server must be able to open what root has made. */
export function adoptFile(path: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  chownSync(path, uid, gid)
}
