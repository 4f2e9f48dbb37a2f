/** Ends every program alike: reports an unexpected error in one line and flushes all output. */
import process from 'node:process'

const { env, stdout, stderr } = process

/** Ends the process at an uncaught error, except when the reader of its output has gone. */
export function endOnSurprise(program: string): void {
  const end = (error: unknown) => fail(program, error)
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // The reader has gone; what is served or written to a disk goes on.
      if (error.code !== 'EPIPE') end(error)
    })
  }
  process.on('uncaughtException', end)
  process.on('unhandledRejection', end)
}

/** Waits until a slow reader has everything; errors of the streams have been emitted by then. */
export async function flush(): Promise<void> {
  await Promise.all([stdout, stderr].map(drain))
}

const drain = (stream: NodeJS.WriteStream) =>
  new Promise<void>((resolve) => {
    if (stream.destroyed) resolve()
    else stream.write('', () => setImmediate(resolve))
  })

/** One line; the stack only with FLASHER_DEBUG=1. */
function fail(program: string, error: unknown): never {
  const isDebug = env['FLASHER_DEBUG'] === '1'
  const words = error instanceof Error ? (isDebug ? error.stack : error.message) : String(error)
  stderr.write(`${program}: ${isDebug ? words : words?.replaceAll(/\p{Cc}+/gu, ' ')}\n`)
  process.exit(1)
}
