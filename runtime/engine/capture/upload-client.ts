/** Uploads a captured image to flasher-cache in parts, and goes on where a connection broke (docs/decisions/0022). */
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseUploadOffset, type CaptureSource } from './rules/order.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { isPassing } from '#kit/net/rules/http-range.ts'
import {
  decideDelay,
  describeFailure,
  parseRetryAfter,
  renderRefusal,
} from '#kit/net/rules/network-failure.ts'
import type { WrittenFrames } from '#engine/image/frame/frame-writer.ts'
import type { CaptureSink } from './capturer.ts'
import type { Environment } from '#kit/host/shell.ts'
import { createHttpClient, type HttpClient, type HttpRequest } from '#kit/net/http-client.ts'

interface UploadOrder {
  /** `http://cache:8081/captures`, without a slash at its end. */
  readonly base: string
  readonly token: string
  readonly name: string
  readonly source: Partial<CaptureSource> & Pick<CaptureSource, 'disk'>
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly signal: AbortSignal
  readonly onSent?: () => void
  /** Milliseconds before the first retry. */
  readonly retryMs?: number
  /** Milliseconds of retries while a cache is silent. */
  readonly patienceMs?: number
}

/** Held until the cache has it on its disk: one part on its way, one being filled. */
const PART_BYTES = 8 * 1024 * 1024
const STALL_MS = 60_000
const PATIENCE_MS = 10 * 60_000
const MAX_ANSWER_BYTES = 64 * 1024

interface UploadAnswer {
  readonly status: number
  readonly offset: number | null
  readonly waitMs: number | null
  readonly text: string
}

/** A Fault where the cache refuses, or is silent for too long. */
async function beginUpload(order: UploadOrder) {
  const client = createHttpClient({ env: order.env, signal: order.signal, stallMs: STALL_MS })
  await using undo = new AsyncDisposableStack()
  undo.use(client)
  const ask = createAsking(client, order)
  const { name } = order
  // The live system of a machine that a server drives has no name of its own.
  const source =
    order.source.mac === undefined ? { hostname: hostname(), ...order.source } : order.source
  const begun = await ask.json(order.base, { name, source })
  const id = readId(begun)
  const url = `${order.base}/${encodeURIComponent(id)}`
  const parts = createParts(ask, url)
  const held = undo.move()
  return {
    put: parts.put,
    /** Returns when the cache has verified all of it. */
    async finish(frames: WrittenFrames, warnings: readonly string[]) {
      await parts.flush()
      order.onSent?.()
      const { storedBytes: bytes, sha256, indexSha256: index_sha256 } = frames
      await ask.json(`${url}/finish`, { bytes, sha256, index_sha256, warnings })
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

function readId({ text, offset }: UploadAnswer): string {
  const document = parseJson(text)
  const id = isRecord(document) ? document['id'] : undefined
  if (typeof id !== 'string' || id === '') throw failed('its answer has no address for the upload')
  // Another capture's bytes cannot go on with those of this one.
  if (offset !== null && offset > 0) throw failed('this token has been used already')
  return id
}

type UploadRequests = ReturnType<typeof createAsking>

function createAsking(client: HttpClient, { token, signal, ...order }: UploadOrder) {
  const { retryMs = 1000, patienceMs = PATIENCE_MS } = order
  const authorization = `Bearer ${token}`

  async function once(url: string, request: HttpRequest): Promise<UploadAnswer> {
    // A false cache must not get the token sent elsewhere.
    const got = await client.fetch({ url, authorization }, { ...request, redirects: 'answer' })
    const { status, headers } = got
    const wait = headers['retry-after']
    const offset = headers['upload-offset']
    let text = ''
    if (request.method !== 'HEAD') {
      for await (const chunk of got.body()) {
        if (text.length < MAX_ANSWER_BYTES) text += chunk.toString()
      }
    }
    return {
      status,
      offset: parseUploadOffset(typeof offset === 'string' ? offset : null),
      waitMs: parseRetryAfter(wait, Number.NaN),
      text,
    }
  }

  /** `judge` null: try again. */
  async function insist<Value>(
    attempt: () => Promise<UploadAnswer>,
    judge: (answer: UploadAnswer) => Value | null,
  ): Promise<Value> {
    let end = performance.now() + patienceMs
    for (let tries = 1; ; tries += 1) {
      const { answer, reason } = await tryOnce(attempt, signal)
      const value = answer === null ? null : judge(answer)
      if (value !== null) return value
      const waitMs = answer?.waitMs ?? decideDelay(tries, retryMs, Math.random())
      // A cache that still verifies is at work, however long that takes.
      if (answer?.status === 202) end = performance.now() + waitMs + patienceMs
      else if (performance.now() + waitMs > end) throw failed(reason)
      await sleep(waitMs, undefined, { signal })
    }
  }

  return {
    once,
    insist,
    async json(url: string, body: object): Promise<UploadAnswer> {
      const headers = { 'content-type': 'application/json', accept: 'application/json' }
      const request = { method: 'POST', headers, body: JSON.stringify(body) } as const
      return await insist(() => once(url, request), judgeAccepted)
    },
  }
}

/** A network failure passes, unless its cause is permanent. */
async function tryOnce(attempt: () => Promise<UploadAnswer>, signal: AbortSignal) {
  try {
    const answer = await attempt()
    return { answer, reason: describe(answer) }
  } catch (thrown) {
    signal.throwIfAborted()
    const failure = describeFailure(thrown)
    if (failure === null) throw thrown
    if (failure.isFinal) throw failed(failure.reason, failure.hint)
    return { answer: null, reason: failure.reason }
  }
}

/** HTTP 202: the upload is still being verified. */
function judgeAccepted(answer: UploadAnswer): UploadAnswer | null {
  if (answer.status === 200 || answer.status === 201) return answer
  if (answer.status === 202 || isLater(answer)) return null
  throw failed(describe(answer))
}

/** Another request writes, the cache's disk is full, or what `isPassing` knows. */
const isLater = ({ status, waitMs }: UploadAnswer) =>
  isPassing(status) || status === 507 || (status === 409 && waitMs !== null)

const describe = ({ status, text }: UploadAnswer): string => renderRefusal(status, text)

const failed = (reason: string, hint?: string) =>
  new Fault('upstream-failed', `the image cannot be uploaded: ${reason}`, { hint })

function createParts(ask: UploadRequests, url: string) {
  const spare = [Buffer.alloc(PART_BYTES)]
  let part = Buffer.alloc(PART_BYTES)
  let filled = 0
  let offset = 0
  let sending: Promise<void> = Promise.resolve()

  async function send() {
    await sending
    const full = part
    const bytes = full.subarray(0, filled)
    const at = offset
    part = spare.pop() ?? Buffer.alloc(PART_BYTES)
    offset += filled
    filled = 0
    sending = sendPart(ask, url, bytes, at).then(() => void spare.push(full))
    // Thrown when the next part is sent.
    sending.catch(() => undefined)
  }

  return {
    /** The bytes may be reused when this resolves. */
    async put(bytes: Buffer) {
      for (let at = 0; at < bytes.length;) {
        const copied = bytes.copy(part, filled, at)
        filled += copied
        at += copied
        if (filled === part.length) await send()
      }
    },
    async flush() {
      if (filled > 0) await send()
      await sending
    },
  }
}

/** After a failure it first asks how much the cache has. */
async function sendPart(
  ask: UploadRequests,
  url: string,
  part: Buffer,
  start: number,
): Promise<void> {
  const end = start + part.length
  let at = start
  let isSure = true

  async function attempt(): Promise<UploadAnswer> {
    if (!isSure) {
      const head = await ask.once(url, { method: 'HEAD' })
      if (head.status !== 200 || head.offset === null) return head
      note(head.offset)
      if (at === end) return head
    }
    isSure = false
    const headers = { 'content-type': 'application/octet-stream', 'upload-offset': String(at) }
    const body = part.subarray(at - start)
    const answer = await ask.once(url, { method: 'PATCH', headers, body })
    if (answer.offset !== null) note(answer.offset)
    return answer
  }

  function note(offset: number) {
    if (offset < start || offset > end) throw failed('the cache lost the upload')
    at = offset
    isSure = true
  }

  await ask.insist(attempt, (answer) => {
    if (isSure && at === end) return true
    if (isSure || answer.status === 204 || isLater(answer)) return null
    throw failed(describe(answer))
  })
}

/** Warnings are for the operator who accepts the image. Rejects with a Fault `upstream-failed`. */
export const toUpload =
  (order: UploadOrder, warnings: readonly string[]): CaptureSink =>
  async (write) => {
    await using upload = await beginUpload(order)
    const frames = await write(upload.put)
    await upload.finish(frames, warnings)
    return frames
  }
