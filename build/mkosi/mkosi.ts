/** Runs mkosi as unpacked from its package: of the host it uses only Python and apt. */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'zx/core'

interface MkosiOptions {
  /** Where the files of the package lie. */
  readonly mkosi: string
  /** Where it looks for its configuration. */
  readonly directory: string
  /** Its caches: packages, unfinished trees, work in progress. */
  readonly cache: string
  readonly args: readonly string[]
}

const FOLDERS = {
  '--cache-directory': 'trees',
  '--package-cache-directory': 'packages',
  '--workspace-directory': 'work',
}

/** Runs mkosi and resolves to its exit code; its output goes where ours goes. */
export async function runMkosi({ mkosi, directory, cache, args }: MkosiOptions): Promise<number> {
  const folders = Object.entries(FOLDERS).map(([flag, name]) => [flag, join(cache, name)])
  for (const [, folder = ''] of folders) await mkdir(folder, { recursive: true })
  return await start(mkosi, ['--directory', directory, ...folders.flat(), ...args])
}

/**
 * Runs a program with a tools tree as its `/usr`, and resolves to its exit code; everything else is
 * the host's.
 */
export const runInTools = (mkosi: string, tools: string, argv: readonly string[]) =>
  start(mkosi, ['--directory', '', '--tools-tree', tools, 'box', '--', ...argv])

/** Its exit code; 1 when a signal ended it. */
async function start(mkosi: string, args: readonly string[]): Promise<number> {
  // The Python of a version manager may lie where mkosi's sandbox does not look.
  const python = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3'
  const env = {
    ...process.env,
    PYTHONPATH: join(mkosi, 'usr/lib/python3/dist-packages'),
    PYTHONDONTWRITEBYTECODE: '1',
    PATH: `/usr/sbin:/usr/bin:/sbin:/bin:${process.env['PATH'] ?? ''}`,
    TZ: 'UTC',
  }
  const run = $({ env, stdio: ['ignore', 'inherit', 'inherit'], nothrow: true, quiet: true })
  const { exitCode } = await run`${python} -m mkosi ${args}`
  return exitCode ?? 1
}
