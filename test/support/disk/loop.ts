/** A loop device of its own for a test, given back whatever happens: `await using loop = …`. */
import { execFile } from 'node:child_process'
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { SCRATCH } from '../scratch.ts'

export interface LoopOptions {
  /** The size; `sizeBytes` wins where both are given. 64 MiB when neither is. */
  readonly megabytes?: number
  readonly sizeBytes?: number
  readonly sectorBytes?: 512 | 4096
  readonly readonly?: boolean
  /** Bypass the page cache of the backing's file system (ext4: yes, tmpfs: no). */
  readonly directIo?: boolean
  /** The folder under which the backing file lies; one in memory where it is left out and the disk is small. */
  readonly directory?: string
  /** An existing file or device to sit on, which then stays. */
  readonly backing?: string
}

export interface Loop extends AsyncDisposable {
  /** `/dev/loopN`. */
  readonly device: string
  /** The backing file, sparse when we made it. */
  readonly backing: string
}

const MAX_BYTES_IN_MEMORY = 256 * 2 ** 20

const run = promisify(execFile)
const tryRun = (tool: string, argv: readonly string[]) => run(tool, argv).catch(() => undefined)

/** Needs root. Disposing unmounts what is mounted from it, removes partitions, detaches, deletes. */
export async function createLoop(options: LoopOptions = {}): Promise<Loop> {
  const folder = await mkdtemp(join(options.directory ?? directoryOf(options), 'flasher-loop-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const backing = options.backing ?? join(folder, 'disk')
    if (options.backing === undefined) await makeSparse(backing, bytesOf(options))
    const argv = ['--find', '--show', ...flagsOf(options), backing]
    const device = (await run('losetup', argv)).stdout.trim()
    return {
      device,
      backing,
      async [Symbol.asyncDispose]() {
        await detach(device).finally(remove)
      },
    }
  } catch (error) {
    await remove()
    throw error
  }
}

const flagsOf = ({ sectorBytes = 512, readonly, directIo }: LoopOptions): readonly string[] => [
  `--sector-size=${sectorBytes}`,
  ...(readonly === true ? ['--read-only'] : []),
  ...(directIo === true ? ['--direct-io=on'] : []),
]

/** Direct I/O takes a file system that has it. */
const directoryOf = (options: LoopOptions) =>
  options.directIo !== true && bytesOf(options) <= MAX_BYTES_IN_MEMORY ? SCRATCH : tmpdir()

const bytesOf = ({ sizeBytes, megabytes = 64 }: LoopOptions) => sizeBytes ?? megabytes * 2 ** 20

async function makeSparse(path: string, bytes: number) {
  await using file = await open(path, 'wx')
  await file.truncate(bytes)
}

/** Best effort, in the order the kernel needs: a device in use would only be marked for later. */
async function detach(device: string) {
  const swaps = await readFile('/proc/swaps', 'utf8')
  if (swaps.includes(device)) await tryRun('swapoff', [device])
  for (const point of await mountPointsOf(device)) await tryRun('umount', [point])
  if (await hasPartitions(device)) await tryRun('partx', ['-d', device])
  const held = await readBacking(device)
  await run('losetup', ['--detach', device])
  if (held === null) return
  // While somebody still looks at it, the kernel only marks it, and it keeps the file below it in use.
  for (let tries = 0; tries < 250; tries += 1) {
    if ((await readBacking(device)) !== held) return
    await sleep(20)
  }
}

/** Null: nothing is attached to it. */
const readBacking = (device: string) =>
  readFile(`/sys/class/block/${basename(device)}/loop/backing_file`, 'utf8').catch(() => null)

async function hasPartitions(device: string): Promise<boolean> {
  const name = basename(device)
  const entries = await readdir(`/sys/class/block/${name}`)
  return entries.some((entry) => entry.startsWith(`${name}p`))
}

/** Where the device or a partition of it is mounted here, the innermost first. */
async function mountPointsOf(device: string): Promise<readonly string[]> {
  const lines = (await readFile('/proc/self/mounts', 'utf8')).split('\n')
  const ours = lines.flatMap((line) => {
    const [from = '', at = ''] = line.split(' ')
    const isOurs = from === device || from.startsWith(`${device}p`)
    return isOurs ? [at.replaceAll('\\040', ' ')] : []
  })
  return ours.toReversed()
}
