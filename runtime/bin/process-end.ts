/** How every program ends: surprises are told in one line, and what was written is out before. */
import process from 'node:process'

const { env, stdout, stderr } = process

/** Ends the process at whatever nobody caught; a reader of our output who has gone is no reason to. */
export function endOnSurprise(program: string): void {
  const end = (error: unknown) => fail(program, error)
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // Who listened has gone, which is his right; what is served or written to a disk goes on.
      if (error.code !== 'EPIPE') end(error)
    })
  }
  process.on('uncaughtException', end)
  process.on('unhandledRejection', end)
}

/** Waits until a slow reader has all of it; an error of the stream has had its turn by then. */
export async function flush(): Promise<void> {
  await Promise.all([stdout, stderr].map(drain))
}

const drain = (stream: NodeJS.WriteStream) =>
  new Promise<void>((resolve) => {
    if (stream.destroyed) resolve()
    else stream.write('', () => setImmediate(resolve))
  })

/** One line; more of it only for those who asked. */
function fail(program: string, error: unknown): never {
  const isDebug = env['FLASHER_DEBUG'] === '1'
  const words = error instanceof Error ? (isDebug ? error.stack : error.message) : String(error)
  stderr.write(`${program}: ${isDebug ? words : words?.replaceAll(/\p{Cc}+/gu, ' ')}\n`)
  process.exit(1)
}
