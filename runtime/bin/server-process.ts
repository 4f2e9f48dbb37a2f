/** What every server program needs of its process: its end, its hang-ups, and its last words. */
import { enableCompileCache } from 'node:module'
import { constants } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'

const { env, stdin, stdout, stderr } = process

/** Told when the configuration is to be read again. */
const hangups = new Set<() => void>()

/** The world as a line's `World` wants it, without its network. */
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
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // Who listened has gone, which is his right; the server goes on.
      if (error.code !== 'EPIPE') fail(program, error)
    })
  }
  process.on('uncaughtException', (error) => fail(program, error))
  process.on('unhandledRejection', (error) => fail(program, error))
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
  await Promise.all([stdout, stderr].map((stream) => flush(stream)))
  process.exit(code)
}

const flush = (stream: NodeJS.WriteStream) =>
  new Promise<void>((resolve) => {
    if (stream.destroyed) resolve()
    else stream.write('', () => resolve())
  })

/** Never in a shared folder: what lies in the cache is run. */
function cacheFolder(): string {
  if (process.geteuid?.() === 0) return '/var/cache/flasher'
  const home = env['XDG_CACHE_HOME'] || join(env['HOME'] ?? '/nonexistent', '.cache')
  return join(home, 'flasher')
}

/** One line; more of it only for those who asked. */
export function fail(program: string, error: unknown): never {
  const isDebug = env['FLASHER_DEBUG'] === '1'
  const words = error instanceof Error ? (isDebug ? error.stack : error.message) : String(error)
  stderr.write(`${program}: ${isDebug ? words : words?.replaceAll(/\p{Cc}+/gu, ' ')}\n`)
  process.exit(1)
}
