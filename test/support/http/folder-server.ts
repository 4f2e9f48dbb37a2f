/** A web server that has the files of a folder and nothing else. */
import { createReadStream } from 'node:fs'
import http from 'node:http'
import { join, normalize } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { listen } from './hostile-server.ts'

/** Any web server will do: this one has the folder's files and nothing else. */
export async function serveFolder(folder: string) {
  const server = http.createServer((request, response) => {
    const path = join(folder, normalize(decodeURIComponent(request.url ?? '/')))
    pipeline(createReadStream(path), response).catch(() => {
      if (!response.headersSent) response.writeHead(404)
      response.end()
    })
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.dispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
