/** Leads what the demo's machine says on its second serial line to its server, as HTTP. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

interface SerialCall extends AsyncDisposable {
  /** The port of 127.0.0.1 to which the line connects. */
  readonly port: number
}

/**
 * A boot sector has no driver for the network card. It writes a request to the line instead; its answer,
 * which nothing would read, goes nowhere. `url`: the server's.
 */
export async function openSerialCall(url: string): Promise<SerialCall> {
  const { hostname: host, port: serverPort } = new URL(url)
  const open = new Set<Socket>()
  const keep = (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket)).on('error', () => {})
  }
  const server = createServer((line) => {
    keep(line)
    let call: Socket | null = null
    line.on('data', (bytes) => {
      if (call === null) {
        const made = connect({ host, port: Number(serverPort) }).resume()
        keep(made)
        // The server closes it after its answer: what comes next is another call.
        made.once('close', () => (call = null))
        call = made
      }
      call.write(bytes)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it listens on no port')
  return {
    port: address.port,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
