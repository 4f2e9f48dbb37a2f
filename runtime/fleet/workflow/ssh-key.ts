/** The key with which the server logs in to machines: made at its first use, for the server's user alone. */
import { chmod, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ifMissing } from '#kit/foundation/system-error.ts'
import type { Shell } from '#kit/host/shell.ts'
import { makeFolder, moveName, removeName } from '#kit/host/folders.ts'

interface SshKey {
  readonly path: string
  /** One line, as in `authorized_keys`. */
  readonly publicLine: string
}

export type SshKeys = ReturnType<typeof createSshKeys>

interface SshKeysOptions {
  readonly folder: string
  readonly shell: Shell
}

/** `ensure` rejects with a Fault if `ssh-keygen` is missing or fails; the next call tries again. */
export function createSshKeys(options: SshKeysOptions) {
  let opening: Promise<SshKey> | null = null
  return {
    ensure(): Promise<SshKey> {
      opening ??= openKey(options).catch((thrown: unknown) => {
        opening = null
        throw thrown
      })
      return opening
    },
  }
}

async function openKey({ folder, shell }: SshKeysOptions): Promise<SshKey> {
  const path = join(folder, 'id_ed25519')
  await makeFolder(folder, 0o700)
  const key = await stat(path).catch(ifMissing(null))
  if (key === null) await makeKey(path, shell)
  else if ((key.mode & 0o077) !== 0) await chmod(path, 0o600)
  const line = await shell.require(['ssh-keygen', '-y', '-f', path])
  return { path, publicLine: line.trim() }
}

/** Made beside its place: after a crash it is whole, or not there. */
async function makeKey(path: string, shell: Shell): Promise<void> {
  const fresh = `${path}.new`
  await removeName(fresh)
  await shell.require(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'flasher', '-f', fresh])
  await chmod(fresh, 0o600)
  await moveName(`${fresh}.pub`, `${path}.pub`)
  await moveName(fresh, path)
}
