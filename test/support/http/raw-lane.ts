/** Raw requests one after the other over a connection that is kept while the server keeps it. */
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'

export interface RawRequest {
  readonly method: string
  /** As it goes over the wire, latin1. */
  readonly text: string
}

/** A request that gets neither an answer nor a closed connection ends the test instead of hanging it. */
const HANG_MS = 60_000

export function createLane(port: number) {
  let socket: Socket | null = null

  async function connect(): Promise<Socket> {
    const made = createConnection({ port, host: '127.0.0.1' }).setEncoding('latin1')
    // Seen as a close, too.
    made.on('error', () => {})
    await once(made, 'connect')
    return made
  }

  /** The status that was answered; 0: the connection was closed instead. */
  async function ask({ method, text }: RawRequest): Promise<number> {
    if (socket === null || socket.destroyed || socket.readableEnded) socket = await connect()
    const { status, isKept } = await exchange(socket, method, text)
    if (!isKept) socket.destroy()
    return status
  }

  return {
    ask,
    [Symbol.dispose]() {
      socket?.destroy()
    },
  }
}

function exchange(socket: Socket, method: string, text: string) {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; isKept: boolean }>()
  let said = ''
  const take = (chunk: string) => {
    said += chunk
    const end = endOf(said, method)
    if (end === null || said.length < end) return
    resolve({ status: statusOf(said), isKept: !/^connection: close\r$/im.test(said.slice(0, end)) })
  }
  const close = () => resolve({ status: statusOf(said), isKept: false })
  const hang = () =>
    reject(new Error(`no answer to ${JSON.stringify(text)}: ${said.slice(0, 200)}`))
  socket.on('data', take).once('close', close).once('end', close).setTimeout(HANG_MS, hang)
  socket.write(text, 'latin1')
  return promise.finally(() => {
    socket.off('data', take).off('close', close).off('end', close).off('timeout', hang)
  })
}

const statusOf = (said: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(said)?.[1] ?? 0)

/** Where the answer ends; null: that is not known yet, or it is the end of the connection. */
function endOf(said: string, method: string): number | null {
  const head = said.indexOf('\r\n\r\n') + 4
  if (head === 3) return null
  if (method === 'HEAD' || /^HTTP\/1\.1 (?:1\d\d|204|304)/.test(said)) return head
  const headers = said.slice(0, head)
  const length = /^content-length: (\d+)\r$/im.exec(headers)?.[1]
  if (length !== undefined) return head + Number(length)
  if (!/^transfer-encoding: chunked\r$/im.test(headers)) return null
  const last = said.indexOf('0\r\n\r\n', head)
  return last === -1 ? null : last + 5
}
