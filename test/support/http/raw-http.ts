/** HTTP without a client: bytes in, bytes out, however malformed. */
import { createConnection } from 'node:net'

/** Everything that comes back until the server ends it, or until `waitMs` of silence. */
export async function exchange(
  port: number,
  bytes: string | Uint8Array,
  waitMs = 2000,
): Promise<string> {
  const socket = createConnection({ port, host: '127.0.0.1' })
  const chunks: string[] = []
  socket.setEncoding('latin1')
  const { promise, resolve } = Promise.withResolvers<void>()
  socket.setTimeout(waitMs, resolve)
  socket.on('data', (chunk: string) => chunks.push(chunk))
  socket.on('error', () => resolve())
  socket.on('close', () => resolve())
  socket.write(bytes)
  await promise
  socket.destroy()
  return chunks.join('')
}

/** Returns the status in the first line of a response; 0: the text is none. */
export const codeOf = (text: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)
