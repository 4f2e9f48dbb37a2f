/** The root file system as one compressed file. */
import type { BuildFacts, Level, Step } from './step.ts'

interface SquashfsOptions {
  readonly name: string
  readonly says: string
  /** What is compressed. */
  readonly tree: string
  /** Seconds since 1970: the time of all files. */
  readonly epoch: number
  readonly level: Level
}

/**
 * Levels of zstd: 14 makes files 2 % larger than 16, in two thirds of the time. 9 would take a tenth, but
 * the root would be 9 % larger, and no longer start with the least memory that is promised.
 */
const EFFORT: Readonly<Record<Level, string>> = { dev: '14', release: '16' }

/**
 * The kernel unpacks whole blocks, and a start touches little of each. With 1 MiB the file is 7 %
 * smaller, but in emulation, where the processor is slow, the prompt is a sixth later.
 */
const BLOCK = '256K'

const QUIET = ['-quiet', '-no-progress', '-no-exports']

const timesOf = (epoch: number) => ['-all-time', String(epoch), '-mkfs-time', String(epoch)]

/**
 * Plans the step that makes `root.squashfs` of a tree, without the kernel, which is a file of its
 * own.
 */
export function squashfsStep({ name, says, tree, epoch, level }: SquashfsOptions): Step {
  const pressed = ['-comp', 'zstd', '-Xcompression-level', EFFORT[level], '-b', BLOCK]
  const left = ['-wildcards', '-e', 'usr/lib/modules/*/vmlinuz', 'boot/*']
  const options = ['-noappend', ...QUIET, ...timesOf(epoch), ...pressed, ...left]
  return {
    name,
    says,
    argv: ['mksquashfs', tree, `@${name}/root.squashfs`, ...options],
    inputs: [tree],
    makes: ['root.squashfs'],
    tools: true,
  }
}

interface AppendOptions {
  readonly facts: BuildFacts
  readonly name: string
  readonly says: string
  /** A squashfs, without the folder that is appended. */
  readonly base: string
  /** Becomes a folder of its root, under its own name. */
  readonly folder: string
}

const APPEND = 'cp "$0" "$2" && exec mksquashfs "$@"'
/**
 * Programs are hundreds of small files, which fragments would unpack with their neighbours, again and
 * again: the file is 1 % larger without, but in emulation the prompt is two seconds earlier.
 */
const NO_FRAGMENTS = ['-action', 'no-fragments@true']

/**
 * Plans the step that adds a folder to a squashfs: only what is in the folder is compressed, as the
 * rest was. The outcome is read like the rest, at 1 % more size.
 */
export function appendStep({ facts, name, says, base, folder }: AppendOptions): Step {
  const out = `@${name}/root.squashfs`
  const options = [
    '-keep-as-directory',
    '-no-recovery',
    ...QUIET,
    ...timesOf(facts.epoch),
    ...NO_FRAGMENTS,
  ]
  return {
    name,
    says,
    argv: ['sh', '-c', APPEND, base, folder, out, ...options],
    inputs: [base, folder],
    makes: ['root.squashfs'],
    tools: true,
  }
}
