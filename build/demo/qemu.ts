/** Runs the demo's machine: switches it on, restarts it, reads its serial line, and ends it. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import { StringDecoder } from 'node:string_decoder'
import { stripVTControlCharacters } from 'node:util'

export interface Machine extends AsyncDisposable {
  /** All that the serial line has said so far. */
  readSerial(): Promise<string>
  /** Restarts the machine as the reset button does. */
  restart(): void
  /** Resolves with QEMU's own words when it has ended. */
  readonly ended: Promise<string>
}

interface MachineDependencies {
  readonly argv: readonly string[]
  readonly serialLog: string
  /** Words before its command line; with `setpriv` it ends with this process, even if that is killed. */
  readonly tie: readonly string[]
}

/** Turns it on, until it is disposed. */
export function startMachine({ argv, serialLog, tie }: MachineDependencies): Machine {
  const [program = '', ...words] = [...tie, ...argv]
  // A process group of its own: Ctrl-C reaches it through us alone.
  const child = spawn(program, words, { stdio: ['pipe', 'ignore', 'pipe'], detached: true })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = `${said}${text}`.slice(-4000)
  })
  child.stdin.on('error', () => {}) // A machine that has ended takes no commands.
  const command = (name: string) => child.stdin.write(`${JSON.stringify({ execute: name })}\n`)
  command('qmp_capabilities')
  const ended = awaitEnd(child).then(() => withoutWarnings(said))
  return {
    readSerial: createSerialReader(serialLog),
    restart: () => void command('system_reset'),
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Waits for the end of a program, also of one that could not be started. */
async function awaitEnd(child: ChildProcess): Promise<void> {
  await once(child, 'close').catch(() => undefined)
}

const withoutWarnings = (said: string) =>
  said
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.includes(': warning: '))
    .join('\n')

/** Reads only what has been added since the last call. */
function createSerialReader(path: string): () => Promise<string> {
  const decoder = new StringDecoder('utf8')
  let text = ''
  let offset = 0
  return async () => {
    await using file = await open(path).catch(() => null)
    if (file === null) return text
    const { size } = await file.stat()
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.max(0, size - offset)), {
      position: offset,
    })
    offset += bytesRead
    text += decoder.write(buffer.subarray(0, bytesRead))
    return text
  }
}

/** The last lines that it said, without control characters. */
export async function readSerialTail(path: string, lines = 8): Promise<string> {
  const text = await readFile(path, 'latin1').catch(() => '')
  return text
    .slice(-16_384)
    .split(/[\r\n]+/)
    .map((line) => stripVTControlCharacters(line).replaceAll(/\p{Cc}/gu, ''))
    .filter((line) => line.trim() !== '')
    .slice(-lines)
    .join('\n')
}
