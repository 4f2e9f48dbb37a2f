/** Uploads captured images to a cache, as a machine or an operator does. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { renderUploadToken, UPLOAD_KEY } from '#engine/capture/rules/order.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { createSecret, deriveSecret } from '#kit/web/access/secret.ts'
import { makeBytes } from '../collect.ts'
import { packBuffer } from '../disk/packed-image.ts'
import { makeFolder, serveCache, TOKEN, type CacheOptions } from '../server/image-cache.ts'

export const MAC = '52:54:00:00:00:2a'

export interface CapturedImage {
  readonly file: Buffer
  readonly end: { readonly bytes: number; readonly sha256: string; readonly index_sha256: string }
}

/** An image in frames that hardly gets smaller. */
export async function makeCapture(bytes = 3_000_000): Promise<CapturedImage> {
  const { file, indexSha256 } = await packBuffer(makeBytes(bytes))
  const sha256 = createHash('sha256').update(file).digest('hex')
  return { file, end: { bytes: file.length, sha256, index_sha256: indexSha256 } }
}

/** Makes upload tokens as a server does that has the key at that path. */
export async function makeSigner(path: string) {
  const key = deriveSecret(await createSecret({ path, configured: '' }), UPLOAD_KEY)
  return (name: string, { order = 'order-0001', issuedAt = Date.now(), mac = MAC } = {}) => {
    const parsed = parseMac(mac)
    const purpose = { mac: parsed.ok ? parsed.value : null, name }
    return renderUploadToken({ order, issuedAt }, purpose, key.sign)
  }
}

export const secretOf = (folder: string) => join(folder, '.cache/secret')

export const SOURCE = {
  mac: MAC,
  hostname: 'web-42',
  run: 'run-00000001',
  disk: {
    path: '/dev/sda',
    model: 'QEMU HARDDISK',
    serial: 'QM00001',
    size_bytes: 10_000_000_000,
  },
} as const

interface Asked {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  readonly headers: Headers
}

export function captureClient(base: string, token: string | null) {
  const bearer = token === null ? {} : { authorization: `Bearer ${token}` }
  async function ask(method: string, path: string, body?: BodyInit, more = {}): Promise<Asked> {
    const answer = await fetch(`${base}${path}`, {
      method,
      headers: { ...bearer, ...more },
      ...(body === undefined ? {} : { body }),
    })
    const text = await answer.text()
    const parsed = text.startsWith('{') ? Object(JSON.parse(text)) : {}
    return { status: answer.status, body: parsed, headers: answer.headers }
  }
  const post = (path: string, fields: object) =>
    ask('POST', path, JSON.stringify(fields), { 'content-type': 'application/json' })
  return {
    ask,
    post,
    begin: (name: string, source: object = SOURCE) => post('/captures', { name, source }),
    send: (id: unknown, offset: number | string, bytes: Uint8Array) =>
      ask('PATCH', `/captures/${id}`, new Uint8Array(bytes), { 'upload-offset': String(offset) }),
    offset: async (id: unknown) =>
      (await ask('HEAD', `/captures/${id}`)).headers.get('upload-offset'),
    finish: (id: unknown, end: object) => post(`/captures/${id}/finish`, end),
  }
}

type CaptureClient = ReturnType<typeof captureClient>

/** Uploads a capture, from the first request until it waits for its acceptance; returns its id. */
export async function uploadCapture(
  client: CaptureClient,
  name: string,
  { file, end }: CapturedImage,
  warnings: readonly string[] = [],
): Promise<string> {
  const id = String((await client.begin(name)).body['id'])
  await client.send(id, 0, file)
  const { status, body } = await client.finish(id, { ...end, warnings })
  if (status !== 200) throw new Error(`not finished: ${status} ${JSON.stringify(body)}`)
  return id
}

interface CaptureLabOptions extends CacheOptions {
  /** Called with the folder before the cache opens it, and after it has left it. */
  prepare?(folder: string): void
  leave?(folder: string): void
}

/** A cache, its operator, and a machine with a token for the name of the tests. */
export async function openCaptureLab({ prepare, leave, ...options }: CaptureLabOptions = {}) {
  const folder = await makeFolder()
  prepare?.(folder.path)
  const served = await serveCache(folder.path, options)
  const sign = await makeSigner(secretOf(folder.path))
  return {
    ...served,
    folder: folder.path,
    sign,
    operator: captureClient(served.base, TOKEN),
    machine: (token = sign('web-42.img.zst')) => captureClient(served.base, token),
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]()
      leave?.(folder.path)
      await folder[Symbol.asyncDispose]()
    },
  }
}
