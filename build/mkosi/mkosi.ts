/** Runs mkosi, unpacked from its package: with nothing of the host's but Python and apt. */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { spawn } from 'node:child_process'

interface MkosiOptions {
  /** Where the files of the package lie. */
  readonly mkosi: string
  /** Where it looks for its configuration. */
  readonly directory: string
  /** Its caches: packages, trees half done, work in progress. */
  readonly cache: string
  readonly args: readonly string[]
}

const FOLDERS = {
  '--cache-directory': 'trees',
  '--package-cache-directory': 'packages',
  '--workspace-directory': 'work',
}

/** Ends with its exit code; what it says goes where ours goes. */
export async function runMkosi({ mkosi, directory, cache, args }: MkosiOptions): Promise<number> {
  const folders = Object.entries(FOLDERS).map(([flag, name]) => [flag, join(cache, name)])
  for (const [, folder = ''] of folders) await mkdir(folder, { recursive: true })
  return await start(mkosi, ['--directory', directory, ...folders.flat(), ...args])
}

/** Runs a program with a tools tree as its `/usr`; all else is the host's. */
export const runInTools = (mkosi: string, tools: string, argv: readonly string[]) =>
  start(mkosi, ['--directory', '', '--tools-tree', tools, 'box', '--', ...argv])

function start(mkosi: string, args: readonly string[]): Promise<number> {
  // A Python of a version manager may lie where its sandbox does not look.
  const python = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3'
  const child = spawn(python, ['-m', 'mkosi', ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      PYTHONPATH: join(mkosi, 'usr/lib/python3/dist-packages'),
      PYTHONDONTWRITEBYTECODE: '1',
      PATH: `/usr/sbin:/usr/bin:/sbin:/bin:${process.env['PATH'] ?? ''}`,
      TZ: 'UTC',
    },
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve(signal === null ? (code ?? 1) : 1))
  })
}
