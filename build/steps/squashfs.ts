/** The root file system as one compressed file. */
import type { BuildFacts, Level, Step } from './step.ts'

/** zstd: the middle one makes files a tenth larger in a quarter of the time. */
const EFFORT: Readonly<Record<Level, string>> = { dev: '15', release: '19' }

/** Reads `@tree/live`; the kernel lies beside it, not in it. */
export function squashfsStep({ epoch, level }: BuildFacts): Step {
  const times = ['-all-time', String(epoch), '-mkfs-time', String(epoch)]
  const quiet = ['-noappend', '-quiet', '-no-progress', '-no-exports']
  // Whole megabytes at a time: a smaller file for hardly more memory, and read in order anyway.
  const pressed = ['-comp', 'zstd', '-Xcompression-level', EFFORT[level], '-b', '1M']
  const left = ['-wildcards', '-e', 'usr/lib/modules/*/vmlinuz', 'boot/*']
  return {
    name: 'squashfs',
    says: 'root file system, compressed',
    argv: [
      'mksquashfs',
      '@tree/live',
      '@squashfs/root.squashfs',
      ...quiet,
      ...times,
      ...pressed,
      ...left,
    ],
    inputs: ['@tree/live'],
    makes: ['root.squashfs'],
    tools: true,
  }
}
