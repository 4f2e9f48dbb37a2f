/** A registry on loopback that takes uploads as the specification says, and fails as a test wants. */
import { createHash } from 'node:crypto'
import type * as http from 'node:http'
import { startHostileServer, type HostileServer } from './hostile-server.ts'

export interface UploadRegistry extends Pick<HostileServer, 'origin' | 'seen'>, AsyncDisposable {
  readonly host: string
  readonly blobs: Map<string, Buffer>
  readonly manifests: Map<string, Buffer>
}

/** True: the fault has answered, or will. */
export type UploadFault = (
  request: http.IncomingMessage,
  response: http.ServerResponse,
  registry: Pick<UploadRegistry, 'blobs' | 'manifests'> & { readonly uploads: Map<string, Buffer> },
) => boolean

const UPLOADS = /^\/v2\/lab\/disk\/blobs\/uploads\/(\w*)/
const BLOB = /^\/v2\/lab\/disk\/blobs\/(sha256:[0-9a-f]{64})$/
const MANIFEST = /^\/v2\/lab\/disk\/manifests\/(.+)$/
const digestOf = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

const refuse = (response: http.ServerResponse, status: number, code: string) =>
  response.writeHead(status).end(JSON.stringify({ errors: [{ code, message: code }] }))

/** It knows the repository `lab/disk` alone, and keeps of a broken chunk what has arrived. */
export async function startUploadRegistry(fault: UploadFault): Promise<UploadRegistry> {
  const blobs = new Map<string, Buffer>()
  const manifests = new Map<string, Buffer>()
  const uploads = new Map<string, Buffer>()
  let count = 0

  function tell(response: http.ServerResponse, id: string, status: number) {
    const { length } = uploads.get(id) ?? Buffer.alloc(0)
    const location = `/v2/lab/disk/blobs/uploads/${id}`
    response.writeHead(status, { location, range: `0-${Math.max(0, length - 1)}` }).end()
  }

  function takeChunk(id: string, request: http.IncomingMessage, response: http.ServerResponse) {
    const held = uploads.get(id) ?? Buffer.alloc(0)
    const [, from = '', to = ''] =
      /^(\d+)-(\d+)$/.exec(request.headers['content-range'] ?? '') ?? []
    if (Number(from) !== held.length) {
      request.resume()
      response.writeHead(416).end()
      return
    }
    request.on('data', (bytes: Buffer) => {
      uploads.set(id, Buffer.concat([uploads.get(id) ?? held, bytes]))
    })
    request.on('end', () => {
      const isWhole = uploads.get(id)?.length === Number(to) + 1
      if (isWhole) tell(response, id, 202)
      else refuse(response, 400, 'SIZE_INVALID')
    })
  }

  function complete(id: string, digest: string, response: http.ServerResponse) {
    const bytes = uploads.get(id) ?? Buffer.alloc(0)
    if (digestOf(bytes) !== digest) {
      refuse(response, 400, 'DIGEST_INVALID')
      return
    }
    uploads.delete(id)
    blobs.set(digest, bytes)
    response.writeHead(201, { 'docker-content-digest': digest }).end()
  }

  function answerUpload(id: string, request: http.IncomingMessage, response: http.ServerResponse) {
    const { method, url = '' } = request
    if (method === 'POST') {
      count += 1
      uploads.set(`u${count}`, Buffer.alloc(0))
      tell(response, `u${count}`, 202)
    } else if (!uploads.has(id)) refuse(response, 404, 'BLOB_UPLOAD_UNKNOWN')
    else if (method === 'GET') tell(response, id, 204)
    else if (method === 'PATCH') takeChunk(id, request, response)
    else if (method === 'DELETE') response.writeHead(405).end()
    else complete(id, new URL(url, 'http://x').searchParams.get('digest') ?? '', response)
  }

  function answerManifest(
    tag: string,
    request: http.IncomingMessage,
    response: http.ServerResponse,
  ) {
    if (request.method !== 'PUT') {
      const held = manifests.get(tag)
      if (held === undefined) refuse(response, 404, 'MANIFEST_UNKNOWN')
      else response.end(held)
      return
    }
    const chunks: Buffer[] = []
    request.on('data', (bytes: Buffer) => chunks.push(bytes))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      const named = body.toString().match(/sha256:[0-9a-f]{64}/g) ?? []
      if (!named.every((digest) => blobs.has(digest))) {
        refuse(response, 404, 'MANIFEST_BLOB_UNKNOWN')
        return
      }
      manifests.set(tag, body)
      response.writeHead(201, { 'docker-content-digest': digestOf(body) }).end()
    })
  }

  const server = await startHostileServer((request, response) => {
    if (fault(request, response, { blobs, manifests, uploads })) return
    const { url = '' } = request
    const [, id] = UPLOADS.exec(url) ?? []
    const [, digest] = BLOB.exec(url) ?? []
    const [, tag] = MANIFEST.exec(url) ?? []
    if (id !== undefined) answerUpload(id, request, response)
    else if (tag !== undefined) answerManifest(tag, request, response)
    else if (digest === undefined) response.end('{}')
    else sendBlob(blobs.get(digest), digest, request, response)
  })
  const { origin, seen } = server
  const host = origin.slice('http://'.length)
  return {
    origin,
    seen,
    host,
    blobs,
    manifests,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function sendBlob(
  bytes: Buffer | undefined,
  digest: string,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): void {
  if (bytes === undefined) {
    response.writeHead(404).end()
    return
  }
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
  const part = from === undefined ? bytes : bytes.subarray(Number(from), Number(to) + 1)
  response.writeHead(from === undefined ? 200 : 206, {
    'content-length': part.length,
    'docker-content-digest': digest,
    ...(from === undefined ? {} : { 'content-range': `bytes ${from}-${to}/${bytes.length}` }),
  })
  response.end(request.method === 'HEAD' ? undefined : part)
}
