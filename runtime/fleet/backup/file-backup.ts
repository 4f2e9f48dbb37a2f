/** Opens a single file as if it were a stored backup: a database copy, or an inventory. */
import { createReadStream } from 'node:fs'
import { open, readFile, stat } from 'node:fs/promises'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { isMissing } from '#kit/foundation/system-error.ts'
import type { BackupManifest } from './rules/backup-manifest.ts'
import type { BackupStore, StoredBackup } from './backup-store.ts'

interface FileBackup {
  readonly backup: StoredBackup
  readonly store: Pick<BackupStore, 'read' | 'readBare'>
}

const SQLITE = 'SQLite format 3\0'

/** A restore checks what is in it. Rejects with a Fault if it cannot be read. */
export async function openFileBackup(path: string, line: string): Promise<FileBackup> {
  const bytes = await measure(path)
  const isDatabase = (await readStart(path)) === SQLITE
  const manifest: BackupManifest = {
    version: 1,
    backup_id: path,
    created_at: '',
    release: '',
    line,
    trigger: 'file',
    machines: 0,
    number: 1,
    files: [{ name: 'state.db', bytes, sha256: '', pieces: [] }],
  }
  return {
    backup: { backup_id: path, manifest: isDatabase ? manifest : null, bytes },
    store: {
      async *read() {
        for await (const chunk of createReadStream(path)) {
          if (Buffer.isBuffer(chunk)) yield chunk
        }
      },
      readBare: () => readFile(path),
    },
  }
}

async function measure(path: string): Promise<number> {
  try {
    const found = await stat(path)
    if (found.isFile()) return found.size
  } catch (cause) {
    const isAbsent = isMissing(cause)
    const what = isAbsent
      ? 'is neither a backup nor a file'
      : `cannot be read: ${renderError(cause)}`
    throw new Fault('input-missing', `${path} ${what}`, {
      hint: isAbsent ? LIST : undefined,
      cause,
    })
  }
  throw new Fault('input-invalid', `${path} is no file`)
}

const LIST = 'On a terminal, "flasher-web restore" lists the backups to choose from.'

async function readStart(path: string): Promise<string> {
  await using file = await open(path, 'r')
  const { buffer, bytesRead } = await file.read(Buffer.alloc(SQLITE.length), 0, SQLITE.length, 0)
  return buffer.toString('latin1', 0, bytesRead)
}
