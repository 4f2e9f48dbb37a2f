/** The root file system as one compressed file. */
import type { BuildFacts, Level, Step } from './step.ts'

interface SquashfsOptions {
  readonly name: string
  readonly says: string
  /** What is compressed. */
  readonly tree: string
}

/** Levels of zstd: 15 makes files a tenth larger than 19, in a quarter of the time. */
const EFFORT: Readonly<Record<Level, string>> = { dev: '15', release: '19' }

/** The kernel is a file of its own. */
export function squashfsStep(
  { epoch, level }: BuildFacts,
  { name, says, tree }: SquashfsOptions,
): Step {
  const times = ['-all-time', String(epoch), '-mkfs-time', String(epoch)]
  const quiet = ['-noappend', '-quiet', '-no-progress', '-no-exports']
  // Blocks of 1 MiB make a smaller file, and need hardly more memory.
  const pressed = ['-comp', 'zstd', '-Xcompression-level', EFFORT[level], '-b', '1M']
  const left = ['-wildcards', '-e', 'usr/lib/modules/*/vmlinuz', 'boot/*']
  return {
    name,
    says,
    argv: ['mksquashfs', tree, `@${name}/root.squashfs`, ...quiet, ...times, ...pressed, ...left],
    inputs: [tree],
    makes: ['root.squashfs'],
    tools: true,
  }
}
