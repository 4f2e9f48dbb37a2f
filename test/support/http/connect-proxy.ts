/** An http proxy on loopback that leads every host to 127.0.0.1 and writes down what it was asked. */
import { once } from 'node:events'
import * as http from 'node:http'
import { connect, type Socket } from 'node:net'
import { listen } from './hostile-server.ts'

export interface ConnectProxy extends AsyncDisposable {
  /** `host:port`, without a scheme. */
  readonly address: string
  /** `CONNECT host:port` and `GET http://…`. */
  readonly asked: readonly string[]
  readonly authorizations: readonly (string | undefined)[]
}

/** `refuseWith`: the status of every answer to CONNECT; null: tunnels are made. */
export async function startConnectProxy(refuseWith: number | null = null): Promise<ConnectProxy> {
  const asked: string[] = []
  const authorizations: (string | undefined)[] = []
  const sockets = new Set<Socket>()
  const note = ({ method, url, headers }: http.IncomingMessage) => {
    asked.push(`${method} ${url}`)
    authorizations.push(headers['proxy-authorization'])
  }
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    return socket
  }
  const server = http.createServer((request, response) => {
    note(request)
    const { port, pathname, search } = new URL(request.url ?? '')
    const { method, headers } = request
    const options = { host: '127.0.0.1', port, method, headers, path: `${pathname}${search}` }
    const onward = http.request(options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  server.on('connection', keep)
  server.on('connect', (request: http.IncomingMessage, client: Socket) => {
    note(request)
    if (refuseWith !== null) {
      client.end(`HTTP/1.1 ${refuseWith} No\r\n\r\n`)
      return
    }
    const onward = keep(
      connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n')
        onward.pipe(client)
        client.pipe(onward)
      }),
    )
  })
  const port = await listen(server)
  return {
    address: `127.0.0.1:${port}`,
    asked,
    authorizations,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
