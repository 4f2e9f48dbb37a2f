/** The yardsticks as processes: the same answers from a bare h3 app, or a bare node:http handler. */
import { createReadStream, statSync } from 'node:fs'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { H3 } from 'h3'
import { toNodeHandler } from 'h3/node'

/** What the server under test answers, to be answered without any of its work. */
export interface CannedAnswer {
  /** A pattern as h3 takes it. */
  readonly route: string
  readonly type: string
  readonly text: string
}

export interface Bare {
  readonly kind: 'h3' | 'http'
  readonly answers: readonly CannedAnswer[]
  readonly bootDir: string
}

process.once('message', (bare: Bare) => {
  const server = createServer(bare.kind === 'h3' ? createApp(bare) : createHandler(bare))
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.send?.(typeof address === 'object' ? (address?.port ?? 0) : 0)
  })
})
process.once('disconnect', () => process.exit(0))

/** One route for each answer, and the value that a handler would return. */
function createApp({ answers, bootDir }: Bare): RequestListener {
  const app = new H3()
  for (const { route, type, text } of answers) {
    const value: unknown = type.startsWith('application/json') ? JSON.parse(text) : text
    app.get(route, (event) => {
      if (typeof value === 'string') event.res.headers.set('content-type', type)
      return value
    })
  }
  app.get('/boot/:name', (event) => {
    const path = join(bootDir, event.context.params?.['name'] ?? '')
    event.res.headers.set('content-length', String(statSync(path).size))
    return createReadStream(path)
  })
  for (const route of ['/pxe/:mac/inventory', '/pxe/:mac/done']) {
    app.post(route, async (event) => {
      await event.req.text()
      event.res.status = 204
      return null
    })
  }
  return toNodeHandler(app)
}

function createHandler({ answers, bootDir }: Bare): RequestListener {
  const byPath = new Map(answers.map((answer) => [answer.route, answer]))
  return (request, response) => {
    const path = request.url ?? ''
    if (path.startsWith('/boot/')) {
      sendFile(join(bootDir, path.slice('/boot/'.length)), response)
      return
    }
    const { type, text } = byPath.get(path.replace(/[0-9a-f]{2}(?::[0-9a-f]{2}){5}/, ':mac')) ?? {
      type: 'text/plain',
      text: '',
    }
    response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(text) })
    response.end(text)
  }
}

function sendFile(path: string, response: ServerResponse) {
  response.writeHead(200, { 'content-length': statSync(path).size })
  createReadStream(path).pipe(response)
}
