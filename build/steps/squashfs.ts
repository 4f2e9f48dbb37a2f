/** The root file system as one compressed file. */
import type { BuildFacts, Level, Step } from './step.ts'

interface SquashfsOptions {
  readonly name: string
  readonly says: string
  /** What is compressed. */
  readonly tree: string
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

/** The kernel is a file of its own. */
export function squashfsStep(
  { epoch, level }: BuildFacts,
  { name, says, tree }: SquashfsOptions,
): Step {
  const times = ['-all-time', String(epoch), '-mkfs-time', String(epoch)]
  const quiet = ['-noappend', '-quiet', '-no-progress', '-no-exports']
  const pressed = ['-comp', 'zstd', '-Xcompression-level', EFFORT[level], '-b', BLOCK]
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
