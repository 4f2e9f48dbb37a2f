/** Serves files on loopback as a good web server does: lengths, byte ranges, a strong validator. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { basename } from 'node:path'
import { startHostileServer, type HostileServer } from './hostile-server.ts'

/** Each file under its own name. */
export async function startFileServer(files: readonly string[]): Promise<HostileServer> {
  const known = new Map<
    string,
    { readonly path: string; readonly bytes: number; readonly etag: string }
  >()
  for (const path of files) {
    const { size, mtimeMs } = await stat(path)
    known.set(`/${encodeURIComponent(basename(path))}`, {
      path,
      bytes: size,
      etag: `"${size}-${mtimeMs}"`,
    })
  }
  return startHostileServer((request, response) => {
    const file = known.get(request.url ?? '')
    if (file === undefined) return end(response, 404)
    const range = rangeOf(request.headers.range, file.bytes)
    if (range.from > range.last) return end(response, 416)
    response.writeHead(range.isPart ? 206 : 200, {
      'accept-ranges': 'bytes',
      'content-length': range.last - range.from + 1,
      etag: file.etag,
      ...(range.isPart
        ? { 'content-range': `bytes ${range.from}-${range.last}/${file.bytes}` }
        : {}),
    })
    if (request.method === 'HEAD') return response.end()
    createReadStream(file.path, { start: range.from, end: range.last }).pipe(response)
  })
}

function rangeOf(header: string | undefined, bytes: number) {
  const match = /^bytes=(\d+)-(\d*)$/.exec(header ?? '')
  const last = match?.[2] ? Math.min(Number(match[2]), bytes - 1) : bytes - 1
  return { isPart: match !== null, from: Number(match?.[1] ?? 0), last }
}

function end(response: ServerResponse, status: number) {
  response.writeHead(status)
  response.end()
}
