/** Ends every program alike: reports an unexpected error in one line and flushes all output. */
import process from 'node:process'
import { hintOf, renderError } from '../kit/foundation/fault.ts'

const { env, stdout, stderr } = process

/** Ends the process at an uncaught error, except when the reader of its output has gone. */
export function endOnSurprise(program: string): void {
  const end = (error: unknown) => fail(program, error)
  for (const [name, stream] of Object.entries({ output: stdout, errors: stderr })) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // The reader has gone; what is served or written to a disk goes on.
      if (error.code !== 'EPIPE') fail(`${program}: standard ${name}`, error)
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

/** One line, and how to fix it where that is known; the stack only with FLASHER_DEBUG=1. */
function fail(where: string, error: unknown): never {
  const isDebug = env['FLASHER_DEBUG'] === '1'
  const words = renderError(error).replaceAll(/\p{Cc}+/gu, ' ')
  const hint = hintOf(error)
  stderr.write(`${where}: ${words}\n${hint === undefined ? '' : `  ${hint}\n`}`)
  if (isDebug && error instanceof Error) stderr.write(`${error.stack}\n`)
  process.exit(1)
}
