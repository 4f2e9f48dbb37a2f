/** Builds a live system for the demo, as a person would, with the builder's own progress on the terminal. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import process from 'node:process'
import { BUILD_ARGUMENTS } from './live-source.ts'

interface LiveBuildOptions {
  readonly checkout: string
  /** Standard output is for something else. */
  readonly isQuiet: boolean
  readonly signal: AbortSignal
}

/** Builds, and resolves to whether it succeeded; the builder has said why, where it has not. */
export async function buildLiveSystem({ checkout, isQuiet, signal }: LiveBuildOptions) {
  const [, ...names] = BUILD_ARGUMENTS
  const child = spawn(process.execPath, [join(checkout, 'build/images.ts'), ...names], {
    stdio: ['ignore', isQuiet ? 2 : 'inherit', 'inherit'],
  })
  // Ctrl-C has reached it as well; other signals have not.
  const end = () => void child.kill('SIGTERM')
  signal.addEventListener('abort', end)
  await once(child, 'close')
  signal.removeEventListener('abort', end)
  return child.exitCode === 0
}
