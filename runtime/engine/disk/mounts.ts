/** Mounts foreign file systems in a private place, finds the root among them, and always unmounts them again. */
import { constants, lstat, mkdir, mkdtemp, open, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault, renderError, systemCodeOf } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { removeFolder } from '#kit/host/folders.ts'
import type { Environment, Shell } from '#kit/host/shell.ts'
import { createSlot, type Device } from './device.ts'
import { startKeeper } from './loop-part.ts'
import { locateEnd, type SeenPartition, SIGNATURE_BYTES } from './rules/file-systems.ts'
import type { FilledVolume } from './rules/lsblk.ts'
import {
  BTRFS_TOP,
  decideMountOptions,
  findRootFileSystem,
  type MountPurpose,
  renderWhyNot,
  type RootFileSystem,
  subvolumeOption,
} from './rules/mount.ts'
import type { Partition } from './rules/partition-tables.ts'

interface MountRequest {
  readonly node: string
  /** None is guessed, and no helper program is started. */
  readonly type: string
  readonly options: readonly string[]
}

export interface Mounted extends AsyncDisposable {
  /** Where this process sees its root. */
  readonly root: string
  /** Where programs started with `enter` see it. */
  readonly at: string
  enter(argv: readonly string[]): readonly string[]
  sync(): Promise<void>
}

/** `env`: TMPDIR is the place of mount points. */
export interface MountTools {
  readonly shell: Shell
  readonly env: Environment
}

/** Throws a Fault `plan-refused`: to be called before a disk is written. */
export async function checkMountPlace({ env }: Pick<MountTools, 'env'>): Promise<void> {
  const parent = env['TMPDIR'] || '/tmp'
  try {
    await removeFolder(await mkdtemp(join(await realpath(parent), 'flasher-mount-')))
  } catch (cause) {
    throw new Fault(
      'plan-refused',
      `no mount point can be made in ${parent}: ${renderError(cause)}`,
      {
        hint: 'Set TMPDIR to a writable folder.',
        cause,
      },
    )
  }
}

/** A failed mount is a Fault `tool-failed` with mount's own reason. */
async function mountPrivately(
  { shell, env }: MountTools,
  { node, type, options }: MountRequest,
): Promise<Mounted> {
  await using undo = new AsyncDisposableStack()
  undo.defer(() => waitUntilFree(node))
  const folder = await mkdtemp(join(await realpath(env['TMPDIR'] || '/tmp'), 'flasher-mount-'))
  undo.defer(() => removeFolder(folder))
  const at = join(folder, 'root')
  await mkdir(at)
  undo.defer(() => removeFolder(at))
  const space = undo.use(await openSpace(shell))
  const argv = ['mount', '-i', '-t', type, '-o', options.join(','), '--', node, at]
  const { exitCode, stderr } = await shell.run(space.enter(argv))
  if (exitCode !== 0) throw new Fault('tool-failed', `cannot be mounted: ${reasonOf(stderr, at)}`)
  undo.defer(() => unmount(shell, space, node, at))
  const root = `/proc/${space.pid}/root${at}`
  const held = undo.move()
  return {
    root,
    at,
    enter: space.enter,
    sync: async () => void (await shell.require(['sync', '--file-system', root])),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** mount(8) prints the place, then the reason, then where to read more. */
const reasonOf = (stderr: string, at: string) =>
  (stderr.split('\n')[0] ?? '').split(`${at}: `).at(-1) || 'mount gave no reason'

type MountSpace = Awaited<ReturnType<typeof openSpace>>

/**
 * A mount namespace held by a `cat` that reads from us. When we end, even by SIGKILL, it ends too,
 * and the kernel removes every mount in it. What the host unmounts goes here as well (`slave`);
 * nothing of ours shows there.
 */
async function openSpace(shell: Shell) {
  const argv = ['unshare', '--mount', '--propagation', 'slave', '--', 'cat']
  // A line comes back once `unshare` has become `cat`; setsid and unshare keep the pid.
  const words = { what: 'mount namespace', tool: 'unshare' }
  const keeper = await startKeeper(shell, { argv, ...words })
  const into = ['nsenter', `--target=${keeper.pid}`, '--mount', '--wd', '--']
  return { ...keeper, enter: (inner: readonly string[]) => [...into, ...inner] }
}

const TRIES = 5
const PAUSE_MS = 200

async function unmount(shell: Shell, space: MountSpace, node: string, at: string) {
  for (let tries = 1; ; tries += 1) {
    // Recursive, as a workflow may have mounted below.
    const { exitCode, stderr } = await shell.run(space.enter(['umount', '-R', '--', at]))
    if (exitCode === 0) return
    if (tries === TRIES) {
      throw new Fault('tool-failed', `cannot unmount ${node}: ${stderr.trim()}`, {
        hint: 'Stop the programs that use it. It is unmounted when the last one ends.',
      })
    }
    await pause(PAUSE_MS * tries)
  }
}

const FREE_WITHIN_MS = 3000

/**
 * The kernel clears a namespace a moment after its last process. Best effort: the next user of the
 * disk reports that it is busy.
 */
async function waitUntilFree(node: string) {
  const { O_RDONLY, O_EXCL, O_NONBLOCK } = constants
  for (let waited = 0; waited < FREE_WITHIN_MS; waited += 50) {
    const file = await open(node, O_RDONLY | O_EXCL | O_NONBLOCK).catch((error: unknown) =>
      systemCodeOf(error) === 'EBUSY' ? 'busy' : null,
    )
    if (file !== 'busy') return file?.close()
    await pause(50)
  }
}

export interface Root<Seen> {
  readonly volume: FilledVolume
  /** The mount option that selects it; null: none. */
  readonly subvolume: string | null
  readonly seen: Seen
}

/** Refused in words; rejects with a Fault where the machine lacks something. */
export async function mountVolume(
  tools: MountTools,
  volume: FilledVolume,
  subvolume: string | null,
  purpose: MountPurpose,
): Promise<Result<Mounted, string>> {
  const type = findRootFileSystem(volume.contents.type)
  if (type === null) return refuse(renderWhyNot(volume.contents))
  const { node, contents } = volume
  await using undo = new AsyncDisposableStack()
  if (type === 'btrfs') undo.defer(await takeTurn(contents.uuid ?? '', node))
  const twin = await findTwin(type, volume)
  if (twin !== null) return refuse(twin)
  const options = decideMountOptions(type, purpose, subvolume)
  try {
    const mounted = undo.use(await mountPrivately(tools, { node, type, options }))
    const held = undo.move()
    return accept({ ...mounted, [Symbol.asyncDispose]: () => held.disposeAsync() })
  } catch (error) {
    // An image that cannot be mounted is an answer; a missing tool is none.
    if (error instanceof Fault && error.code === 'tool-failed') return refuse(error.message)
    throw error
  }
}

/** The first root in which `see` sees something; refused in words. */
export async function findRoot<Seen>(
  tools: MountTools,
  volume: FilledVolume,
  see: (root: string) => Promise<Seen | null>,
): Promise<Result<Root<Seen>, string>> {
  const itself = await inspect(tools, volume, null, see)
  if (!itself.ok) return itself
  if (itself.value !== null) return accept({ volume, subvolume: null, seen: itself.value })
  if (volume.contents.type !== 'btrfs') return refuse('not in it')
  const below = await inspect(tools, volume, BTRFS_TOP, (top) => seeBelow(top, see))
  if (!below.ok) return below
  return below.value === null
    ? refuse('not in it, nor in a subvolume')
    : accept({ volume, ...below.value })
}

async function inspect<Found>(
  tools: MountTools,
  volume: FilledVolume,
  subvolume: string | null,
  see: (root: string) => Promise<Found | null>,
): Promise<Result<Found | null, string>> {
  const outcome = await mountVolume(tools, volume, subvolume, 'look')
  if (!outcome.ok) return outcome
  await using mounted = outcome.value
  try {
    return accept(await see(mounted.root))
  } catch (error) {
    // A damaged file system, or a maze of links: the next volume may be the one.
    return refuse(renderReading(error))
  }
}

function renderReading(thrown: unknown): string {
  const code = systemCodeOf(thrown)
  return code === null ? renderError(thrown) : `cannot be read (${code})`
}

/**
 * btrfs goes by UUID alone: the kernel could hand out this machine's own mounted file system
 * instead, as it may run the very image.
 */
async function findTwin(type: RootFileSystem, { node, contents }: FilledVolume) {
  const uuid = contents.uuid ?? ''
  if (type !== 'btrfs' || !/^[0-9a-f-]{36}$/.test(uuid)) return null
  const devices = await readdir(`/sys/fs/btrfs/${uuid}/devices`).catch(() => [])
  return devices.length === 0 || devices.some((name) => node.endsWith(`/${name}`))
    ? null
    : `btrfs with the same UUID as one that is mounted on this machine (${devices.join(', ')})`
}

async function seeBelow<Seen>(top: string, see: (root: string) => Promise<Seen | null>) {
  for await (const path of listSubvolumes(top)) {
    const subvolume = subvolumeOption(path)
    const seen = subvolume === null ? null : await see(join(top, path))
    if (seen !== null) return { subvolume, seen }
  }
  return null
}

/** The inode number of each subvolume's top folder, and of no other folder. */
const SUBVOLUME_INODE = 256
/** Enough for `@/.snapshots/1/snapshot`; both bound what a hostile tree can make us read. */
const MAX_DEPTH = 4
const MAX_FOLDERS = 2000

async function* listSubvolumes(top: string): AsyncGenerator<string> {
  const queue = ['']
  for (let looked = 0; looked < MAX_FOLDERS; looked += 1) {
    const folder = queue.shift()
    if (folder === undefined) return
    const stats = await lstat(join(top, folder)).catch(() => null)
    if (stats?.isDirectory() !== true) continue
    if (folder !== '' && stats.ino === SUBVOLUME_INODE) yield folder
    if (folder.split('/').length > MAX_DEPTH || queue.length > MAX_FOLDERS) continue
    const entries = await readdir(join(top, folder), { withFileTypes: true }).catch(() => [])
    const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
    queue.push(...names.toSorted().map((name) => join(folder, name)))
  }
}

/** A superblock of hashes takes no more; direct I/O takes whole blocks. */
const BLOCK_BYTES = 4096

/** Null: it cannot look. */
type Reading = (offset: number, bytes: number) => Promise<Buffer | null>

async function readStarts(
  partitions: readonly Partition[],
  read: Reading,
): Promise<readonly SeenPartition[]> {
  const seen: SeenPartition[] = []
  for (const part of partitions.toSorted((one, other) => one.offset - other.offset)) {
    const first = (await read(part.offset, Math.min(SIGNATURE_BYTES, part.bytes))) ?? NONE
    const end = locateEnd(first) ?? part.bytes
    const at = end - (end % BLOCK_BYTES)
    const isLess = Math.max(at, first.length) + 2 * BLOCK_BYTES <= part.bytes
    const block = isLess ? await read(part.offset + at, 2 * BLOCK_BYTES) : null
    seen.push({ ...part, first, behind: block?.subarray(end - at) ?? null })
  }
  return seen
}

const NONE = Buffer.alloc(0)

export const readDeviceStarts = (device: Device, partitions: readonly Partition[]) =>
  readStarts(partitions, async (offset, bytes) => {
    if (offset + bytes > device.sizeBytes) return null
    const slot = createSlot(bytes)
    await device.read(slot, offset)
    return slot
  })

/** `head`: the image's first bytes, which were read already. */
export const readImageStarts = (
  { head, read }: { readonly head: Buffer; readonly read: Reading },
  partitions: readonly Partition[],
) =>
  readStarts(partitions, async (offset, bytes) =>
    offset + bytes <= head.length ? head.subarray(offset, offset + bytes) : read(offset, bytes),
  )

/** Volumes of the same btrfs take turns: the kernel tells them apart by their UUID alone. */
interface Turn extends PromiseWithResolvers<void> {
  readonly node: string
  mounts: number
}

const turns = new Map<string, Turn>()

/** As one image may be on several disks. Returns what ends the turn. */
export async function takeTurn(uuid: string, node: string): Promise<() => void> {
  let turn = turns.get(uuid)
  while (turn !== undefined && turn.node !== node) {
    await turn.promise
    turn = turns.get(uuid)
  }
  const own = turn ?? { node, mounts: 0, ...Promise.withResolvers<void>() }
  turns.set(uuid, own)
  own.mounts += 1
  return () => {
    own.mounts -= 1
    if (own.mounts > 0) return
    turns.delete(uuid)
    own.resolve()
  }
}
