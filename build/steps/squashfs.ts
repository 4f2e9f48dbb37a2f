/** The root file system as one compressed file. */
import type { BuildFacts, Level, Step } from './step.ts'

interface SquashfsOptions {
  readonly name: string
  readonly says: string
  /** What is compressed. */
  readonly tree: string
}

/** Levels of zstd: 9 makes files a twelfth larger than 16, in a tenth of the time; 19 saves 0.2 %. */
const EFFORT: Readonly<Record<Level, string>> = { dev: '9', release: '16' }

/**
 * The kernel unpacks whole blocks, and a start touches little of each. With 1 MiB the file is 7 %
 * smaller, but a machine without a fast processor reaches the prompt a sixth later.
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
