/** Sets up what every program uses of its process, streams and signals, and ends all of them alike. */
import { constants } from 'node:os'
import process from 'node:process'
import { hintOf, renderError } from '#kit/foundation/fault.ts'

const { env, stdin, stdout, stderr } = process

type Ending = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** `endings`: the signals that ask the program to end. */
export function openProcess(program: string, endings: readonly Ending[] = ['SIGINT', 'SIGTERM']) {
  const ending = new AbortController()
  let endedBy: Ending | null = null
  for (const name of endings) {
    process.on(name, () => {
      // The second time it ends at once.
      if (endedBy !== null) process.exit(exitCodeOf(name))
      endedBy = name
      ending.abort()
    })
  }
  const hangups = new Set<() => void>()
  // A hang-up would end the process if nobody listened for it.
  if (!endings.includes('SIGHUP'))
    process.on('SIGHUP', () => hangups.forEach((listener) => listener()))
  // A program that was started beside another one ends with that one, however that ended.
  process.on('disconnect', () => ending.abort())
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
    /** The listener is called when the configuration is to be read again. */
    onHangup: (listener: () => void) => {
      hangups.add(listener)
    },
    /** The exit code that a shell expects of a program that a signal ended; null: none did. */
    interruptedCode: () => (endedBy === null ? null : exitCodeOf(endedBy)),
  }
}

const exitCodeOf = (name: Ending) => 128 + constants.signals[name]

/** Ends the process when everything that was written is out, also into a slow pipe. */
export async function leave(code: number): Promise<never> {
  await flush()
  process.exit(code)
}

/** Ends the process at an uncaught error, except when the reader of its output has gone. */
function endOnSurprise(program: string): void {
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
async function flush(): Promise<void> {
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
