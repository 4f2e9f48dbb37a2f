/** Chooses and creates the state directory of a server, and checks that it is writable. */
import { access, constants, stat } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { makeFolder } from '#kit/host/folders.ts'
import type { Environment } from '#kit/host/shell.ts'

const ROOT_STATE_DIR = '/var/lib/flasher'

/** The system's folder for root, else the user's own. */
export function defaultStateDir(env: Environment, isRoot: boolean): string {
  if (isRoot) return ROOT_STATE_DIR
  const given = env['XDG_STATE_HOME'] ?? ''
  // The specification of this variable says that a relative path in it counts as none.
  const home = isAbsolute(given) ? given : join(env['HOME'] || '/nonexistent', '.local/state')
  return join(home, 'flasher')
}

/**
 * For its owner alone (mode 0700), and proves it usable. Rejects with a Fault `input-missing` where
 * it cannot be used, `input-invalid` where it is not a folder.
 */
export async function prepareStateDir(path: string): Promise<void> {
  const hint =
    'Choose another with FLASHER_PATHS_STATE_DIR or [paths] state_dir, or make the user who runs this its owner.'
  try {
    await makeFolder(path, 0o700)
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    const why = renderError(cause)
    throw new Fault('input-missing', `the state directory ${path} cannot be used: ${why}`, {
      cause,
      hint,
    })
  }
  if (!(await stat(path)).isDirectory()) {
    throw new Fault('input-invalid', `the state directory ${path} is not a directory`, { hint })
  }
}

/** Commands that only look must not make it. */
export const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
