/** A file system in a file: made, mounted where the kernel or FUSE can, listed with the content of every file, and checked. */
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx'
import { untilFree } from '#test/support/disk/writer.ts'
import type { LivedKind } from './life.ts'

export const run = $({ quiet: true, verbose: false })
export const tryRun = $({ quiet: true, verbose: false, nothrow: true })

const MAKERS: Readonly<Record<LivedKind, readonly string[]>> = {
  btrfs: ['mkfs.btrfs', '-q', '-f'],
  ext4: ['mkfs.ext4', '-q', '-F'],
  xfs: ['mkfs.xfs', '-q', '-f'],
  vfat: ['mkfs.fat'],
  exfat: ['mkfs.exfat'],
  ntfs: ['mkntfs', '--quiet', '--force', '--fast'],
}

const MOUNTERS: Readonly<Record<LivedKind, readonly string[] | null>> = {
  btrfs: ['mount', '-t', 'btrfs'],
  ext4: ['mount'],
  xfs: ['mount', '-t', 'xfs'],
  // Few kernels of test machines have it: mtools is used instead.
  vfat: null,
  exfat: ['mount.exfat-fuse'],
  ntfs: ['ntfs-3g'],
}

const CHECKERS: Readonly<Record<LivedKind, readonly string[]>> = {
  btrfs: ['btrfs', 'check', '--readonly'],
  ext4: ['e2fsck', '-f', '-n'],
  xfs: ['xfs_repair', '-n'],
  vfat: ['fsck.fat', '-n'],
  exfat: ['fsck.exfat', '-n'],
  ntfs: ['ntfsresize', '--info', '--force', '--no-progress-bar'],
}

export const makeVolume = (kind: LivedKind, options: readonly string[], node: string) =>
  run`${MAKERS[kind]} ${options} ${node}`

/** Whether its own tool finds nothing wrong. */
export const isSound = async (kind: LivedKind, node: string): Promise<boolean> => {
  const { exitCode, stdout } = await tryRun`${CHECKERS[kind]} ${node}`
  return exitCode === 0 || (kind === 'ntfs' && stdout.includes('Space in use'))
}

export const canMount = (kind: LivedKind): boolean => MOUNTERS[kind] !== null

export const mount = (kind: LivedKind, node: string, at: string, options: readonly string[]) =>
  run`${MOUNTERS[kind] ?? []} ${options.length === 0 ? [] : ['-o', options.join()]} ${node} ${at}`

/** Ends when nothing holds the device any more: a mount may live on in a namespace that was made meanwhile. */
export async function unmount(node: string, at: string): Promise<void> {
  await run`umount ${at}`
  await untilFree(node)
}

/** A loop device on a part of a file. */
export async function attach(file: string, offset: number, bytes: number) {
  const argv = ['--find', '--show', `--offset=${offset}`, `--sizelimit=${bytes}`, file]
  const node = (await run`losetup ${argv}`).stdout.trim()
  return { node, [Symbol.asyncDispose]: async () => void (await tryRun`losetup --detach ${node}`) }
}

/** One line for each name, and one for the content of each file: of all subvolumes too. */
export async function listAll(kind: LivedKind, node: string): Promise<ReadonlySet<string>> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-listed-'))
  const at = folder.path
  if (!canMount(kind)) {
    await tryRun`mcopy -n -s -Q -i ${node} ::/ ${at}`
    return await listTree(at)
  }
  await mount(kind, node, at, ['ro'])
  try {
    return await listTree(at)
  } finally {
    await unmount(node, at)
  }
}

async function listTree(at: string): Promise<ReadonlySet<string>> {
  const names = await run({ cwd: at })`find . -printf '%p %y %l %n\\n'`
  // What cannot be read has no line.
  const files = await tryRun({ cwd: at })`find . -type f -print0 | xargs -0 -r sha256sum`
  return new Set(`${names.stdout}\n${files.stdout}`.split('\n').filter(Boolean))
}
