/** The API for uploads in parts: `/uploads`, resumable after a lost connection or a restart. */
import { getRouterParam, type H3Event } from 'h3'
import { MAX_UPLOAD_BYTES, UploadSchema } from '#engine/catalog/rules/image-upload.ts'
import { parseContentRange } from '#kit/net/rules/http-range.ts'
import type { Upload } from '#cache/arrivals/uploads.ts'
import { json, nothing } from '#kit/web/answers/answers.ts'
import { checked } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { CacheSite } from './site.ts'

/** Shorter than the timeouts of proxies. */
const VERIFY_WAIT_MS = 10_000
const RETRY_LATER = { 'retry-after': '2' } as const

export function uploadRoutes({ cache: { uploads } }: CacheSite): readonly Route[] {
  async function create(body: unknown) {
    const upload = await uploads.create(checked(UploadSchema, body))
    const status = upload.offset === 0 ? 201 : 200
    return json(renderUpload(upload), status, { location: `/uploads/${upload.id}` })
  }

  async function append(event: H3Event, bytes: AsyncIterable<Uint8Array>) {
    const part = parseContentRange(event.req.headers.get('content-range') ?? '')
    if (part === null) {
      throw refuse(400, 'Content-Range must say which bytes these are: bytes 0-8388607/52428800')
    }
    return json(renderUpload(await uploads.append(idOf(event), part, bytes)))
  }

  async function complete(event: H3Event) {
    const { name, sha256, sizeBytes } = await uploads.complete(idOf(event), VERIFY_WAIT_MS)
    const body = { name, sha256, size_bytes: sizeBytes }
    return sha256 === null ? json(body, 202, RETRY_LATER) : json(body, 201)
  }

  async function remove(event: H3Event) {
    await uploads.remove(idOf(event))
    return nothing()
  }

  const change = { access: 'admin' } as const
  const one = '/uploads/:id'
  return [
    {
      method: 'GET',
      path: '/uploads',
      ...change,
      handle: () => json({ uploads: uploads.list().map(renderUpload) }),
    },
    {
      method: 'POST',
      path: '/uploads',
      ...change,
      takes: 'json',
      handle: (_, body) => create(body),
    },
    {
      method: 'GET',
      path: one,
      ...change,
      handle: (event) => json(renderUpload(uploads.find(idOf(event)))),
    },
    {
      method: 'PATCH',
      path: one,
      ...change,
      takes: 'bytes',
      most: MAX_UPLOAD_BYTES,
      handle: append,
    },
    { method: 'POST', path: `${one}/complete`, ...change, handle: complete },
    { method: 'DELETE', path: one, ...change, handle: remove },
  ]
}

const idOf = (event: H3Event): string => getRouterParam(event, 'id') ?? ''

const renderUpload = ({ id, name, sizeBytes, offset, touchedAt }: Upload) => ({
  id,
  name,
  size_bytes: sizeBytes,
  offset,
  touched_at: touchedAt,
})
