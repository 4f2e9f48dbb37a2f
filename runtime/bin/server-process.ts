/** What every server program needs of its process: its end, and its hang-ups. */
import { enableCompileCache } from 'node:module'
import { constants } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { endOnSurprise, flush } from './process-end.ts'

const { env, stdin, stdout, stderr } = process

/** Told when the configuration is to be read again. */
const hangups = new Set<() => void>()

/** The environment as a line's `ProcessEnvironment` wants it, without its network. */
export function openProcess(program: string) {
  enableCompileCache(cacheFolder())
  const ending = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      // The second time is meant: nothing is waited for.
      if (ending.signal.aborted) process.exit(128 + constants.signals[name])
      ending.abort()
    })
  }
  // Started beside another program: it ends with that one, however that ended.
  process.on('disconnect', () => ending.abort())
  process.on('SIGHUP', () => {
    for (const listener of hangups) listener()
  })
  endOnSurprise(program)
  return {
    argv: process.argv.slice(2),
    env,
    stdin,
    stdout,
    stderr,
    isRoot: process.geteuid?.() === 0,
    systemDir: '/etc/flasher',
    signal: ending.signal,
    onHangup: (listener: () => void) => {
      hangups.add(listener)
    },
  }
}

/** What was written is out before the process ends, also into a slow pipe. */
export async function leave(code: number): Promise<never> {
  await flush()
  process.exit(code)
}

/** Never in a shared folder: what lies in the cache is run. */
function cacheFolder(): string {
  if (process.geteuid?.() === 0) return '/var/cache/flasher'
  const home = env['XDG_CACHE_HOME'] || join(env['HOME'] ?? '/nonexistent', '.cache')
  return join(home, 'flasher')
}
