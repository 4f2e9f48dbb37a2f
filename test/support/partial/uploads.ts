/** An image that an operator uploads, and one that a machine has captured, as transfers into the real cache. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { captureClient, makeCapture, makeSigner } from '../capture/uploads.ts'
import { makeBytes } from '../collect.ts'
import { startCache, type CacheProcess } from '../server/image-cache.ts'
import { SAFE, sendBeginning, untilLong, type Transfer } from './transfer.ts'

const UPLOADED = 'x.img'
const CAPTURED = 'web-42.img.zst'

/** The cache as one process after another, and what both kinds ask of it. */
function createProgram(state: string) {
  let program: CacheProcess | null = null
  const running = (): CacheProcess => {
    if (program === null) throw new Error('the cache was not started')
    return program
  }
  return {
    running,
    data: join(state, 'cache/.cache'),
    offered: (name: string) => readFile(join(state, 'cache', name)),
    operator: () => captureClient(running().base, running().token),
    async start(checkout?: string) {
      program = await startCache(state, {}, checkout)
    },
    async kill() {
      await running().kill('SIGKILL')
    },
    [Symbol.asyncDispose]: async () => program?.[Symbol.asyncDispose](),
  }
}

export function createUpload(state: string): Transfer {
  const bytes = makeBytes(2_000_000)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const cache = createProgram(state)
  let id = ''
  const rangeOf = (from: number) => ({
    'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}`,
  })

  /** Again, the same upload is found; where it was lost, another one begins. */
  async function begin(): Promise<number> {
    const request = { name: UPLOADED, size_bytes: bytes.length, sha256, version: '1' }
    const { body } = await cache.operator().post('/uploads', request)
    id = String(body['id'])
    return Number(body['offset'])
  }

  return {
    ...cache,
    bytes,
    file: () => join(cache.data, 'uploads', id),
    record: () => join(cache.data, `records/upload+${id}.json`),
    async bring(to) {
      await begin()
      const safe = Math.min(to, SAFE)
      const headers = { 'content-range': `bytes 0-${safe - 1}/${bytes.length}` }
      const path = `/uploads/${id}`
      if (safe > 0)
        await cache.operator().ask('PATCH', path, new Uint8Array(bytes.subarray(0, safe)), headers)
      if (to <= SAFE) return
      const { base, token } = cache.running()
      const bearer = { authorization: `Bearer ${token}`, ...rangeOf(SAFE) }
      const part = { url: `${base}${path}`, headers: bearer, length: bytes.length - SAFE }
      await sendBeginning(part, bytes.subarray(SAFE, to))
      await untilLong(join(cache.data, 'uploads', id), to)
    },
    async finish() {
      const from = await begin()
      const rest = new Uint8Array(bytes.subarray(from))
      await cache.operator().ask('PATCH', `/uploads/${id}`, rest, rangeOf(from))
      const { status, body } = await cache.operator().post(`/uploads/${id}/complete`, {})
      if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
      return { from, offered: await cache.offered(UPLOADED) }
    },
  }
}

export async function createCaptured(state: string): Promise<Transfer> {
  const { file: bytes, end } = await makeCapture(2_000_000)
  const cache = createProgram(state)
  let [id, token] = ['', '']
  const machine = () => captureClient(cache.running().base, token)

  /** Where the capture was lost, the machine starts over with a newer token of the same order. */
  async function begin(isOver: boolean): Promise<number> {
    const sign = await makeSigner(join(state, 'session-secret'))
    if (token === '' || isOver) token = sign(CAPTURED, { issuedAt: Date.now() })
    const { headers, body } = await machine().begin(CAPTURED)
    id = String(body['id'])
    return Number(headers.get('upload-offset'))
  }

  return {
    ...cache,
    bytes,
    file: () => join(cache.data, 'captures', id),
    record: () => join(cache.data, `records/capture+${id}.json`),
    async bring(to) {
      await begin(false)
      const safe = Math.min(to, SAFE)
      if (safe > 0) await machine().send(id, 0, bytes.subarray(0, safe))
      if (to <= SAFE) return
      const headers = { authorization: `Bearer ${token}`, 'upload-offset': String(SAFE) }
      const url = `${cache.running().base}/captures/${id}`
      await sendBeginning({ url, headers, length: bytes.length - SAFE }, bytes.subarray(SAFE, to))
      await untilLong(join(cache.data, 'captures', id), to)
    },
    async finish() {
      const isLost = (await machine().offset(id)) === null
      const from = await begin(isLost)
      await machine().send(id, from, bytes.subarray(from))
      const { status, body } = await machine().finish(id, end)
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
      await cache.operator().post(`/captures/${id}/accept`, {})
      return { from, offered: await cache.offered(CAPTURED) }
    },
  }
}
