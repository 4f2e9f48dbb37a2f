/** Writes a file under a temporary name, which becomes its own when all of it is on the disk. */
import { randomUUID } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { isMissing } from '#kit/foundation/system-error.ts'
import { moveNewFile } from '#kit/host/atomic-file.ts'
import { removeName } from '#kit/host/folders.ts'

/** Rejects with a Fault `conflict`, or another one where nobody can tell. */
export async function checkNothingThere(path: string): Promise<void> {
  const there = await stat(path).catch((thrown: unknown) => {
    if (isMissing(thrown)) return null
    throw cannotWrite(path, thrown)
  })
  if (there === null) return
  throw new Fault('conflict', `${path} exists already`, {
    hint: 'Choose another name, or remove it first.',
  })
}

/**
 * The file gets its name when all of it is on the disk. Rejects with a Fault `input-missing`
 * without its folder, another one where it cannot be written.
 */
export async function writeWhole<Result>(
  path: string,
  act: (write: (bytes: Buffer) => Promise<void>) => Promise<Result>,
): Promise<Result> {
  const part = `${path}.${randomUUID().slice(0, 8)}.part`
  const attempt = async <Value>(work: Promise<Value>) =>
    await work.catch((cause: unknown) => {
      throw cause instanceof Fault ? cause : cannotWrite(path, cause)
    })
  const file = await open(part, 'wx').catch((cause: unknown) => {
    if (!isMissing(cause)) throw cannotWrite(path, cause)
    throw new Fault('input-missing', `there is no folder ${dirname(path)}`, { cause })
  })
  let isWhole = false
  try {
    const result = await act(async (bytes) => {
      for (let at = 0; at < bytes.length;) {
        at += (await attempt(file.write(bytes, at))).bytesWritten
      }
    })
    await attempt(file.sync())
    await attempt(moveNewFile(part, path))
    isWhole = true
    return result
  } finally {
    await file.close()
    if (!isWhole) await removeName(part)
  }
}

const cannotWrite = (path: string, cause: unknown) =>
  new Fault('write-failed', `${path} cannot be written: ${renderError(cause)}`, { cause })
