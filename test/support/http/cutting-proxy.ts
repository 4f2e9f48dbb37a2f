/** A way to a server that breaks: each connection is cut after so many bytes towards it. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { once } from 'node:events'

export interface CuttingProxy extends AsyncDisposable {
  /** `http://127.0.0.1:port`. */
  readonly origin: string
  readonly cuts: () => number
}

/** `everyBytes`: of one connection; never less than `atMost` cuts are made where there is as much to send. */
export async function openCuttingProxy(
  target: string,
  everyBytes: number,
  atMost: number,
): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let cuts = 0
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
    let passed = 0
    client.on('data', (chunk) => {
      passed += chunk.length
      upstream.write(chunk)
      if (passed < everyBytes || cuts >= atMost) return
      cuts += 1
      passed = 0
      client.destroy()
      upstream.end()
    })
    client.on('close', () => upstream.end())
    upstream.pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const bound: AddressInfo | string | null = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('no port')
  return {
    origin: `http://127.0.0.1:${bound.port}`,
    cuts: () => cuts,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
