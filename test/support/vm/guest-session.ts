/** The host's end of the line to a guest's agent: scripts go in, what they said comes out. */
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import { connectSocket } from '../http/socket.ts'

export interface Ran {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface GuestSession {
  /** Rejects when the seconds have gone by, or the guest has ended. */
  run(script: string, seconds: number): Promise<Ran>
  /** Writes to the line as it is, for whoever reads there before the agent does. */
  tell(text: string): void
}

/** `ended`: resolves when the guest is no more; whoever waits then learns it. */
export async function openGuestSession(path: string, ended: Promise<void>): Promise<GuestSession> {
  const socket = await connectSocket(path)
  const waiting = new Map<string, (ran: Ran) => void>()
  const lines = createInterface({ input: socket })
  lines.on('error', () => {}) // a guest that was killed: `ended` tells
  lines.on('line', (line) => {
    const [id = '', exitCode, stdout = '', stderr = ''] = line.split(' ')
    waiting.get(id)?.({
      exitCode: Number(exitCode),
      stdout: decode(stdout),
      stderr: decode(stderr),
    })
    waiting.delete(id)
  })
  return {
    tell: (text) => void socket.write(text),
    async run(script, seconds) {
      // A guest that was kept and is continued still tidies up after the last script of another session.
      const id = randomUUID()
      const { promise, resolve, reject } = Promise.withResolvers<Ran>()
      waiting.set(id, resolve)
      const timer = setTimeout(() => {
        reject(new Error(`${seconds} seconds went by in the guest without an end of: ${script}`))
      }, seconds * 1000)
      socket.write(`${id} ${Buffer.from(script).toString('base64')}\n`)
      return orEnd(promise, ended).finally(() => clearTimeout(timer))
    },
  }
}

const decode = (text: string) => Buffer.from(text, 'base64').toString()

const orEnd = <Value>(promise: Promise<Value>, ended: Promise<void>): Promise<Value> =>
  Promise.race([
    promise,
    ended.then(() => {
      throw new Error('the guest has ended')
    }),
  ])
