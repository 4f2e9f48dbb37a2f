/** Small documents from registries: bounded, and asked for again where the server is busy. */
import { isPassing, type Headers } from '../../core/net/http-range.ts'
import type { HttpTarget } from '../../core/net/image-location.ts'
import { describeFailure, STALLED } from '../../core/net/network-failure.ts'
import { decideDelay } from '../../core/net/retry.ts'
import type { HttpAnswer, HttpClient } from './http-client.ts'
import { readRetryAfter } from './http-remote.ts'

export interface RegistryDocument {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
}

export interface DocumentAsker {
  readonly client: Pick<HttpClient, 'fetch'>
  /** Milliseconds before the first repeat. */
  readonly retryMs: number
  pause(ms: number): Promise<void>
}

const TRIES = 3
const MAX_BYTES = 10 * 1024 * 1024
const LONGEST_MS = 30_000

/** Throws the network's errors; a no of the server is an answer. */
export async function askDocument(
  asker: DocumentAsker,
  target: HttpTarget,
  headers: Readonly<Record<string, string>>,
): Promise<RegistryDocument> {
  for (let tries = 1; ; tries += 1) {
    const isLast = tries === TRIES
    const { document, waitMs } = await attempt(asker, target, headers, isLast)
    if (document !== null) return document
    await asker.pause(waitMs ?? decideDelay(tries, asker.retryMs, Math.random()))
  }
}

const LATER = { document: null, waitMs: null } as const

async function attempt(
  { client }: DocumentAsker,
  target: HttpTarget,
  headers: Readonly<Record<string, string>>,
  isLast: boolean,
) {
  try {
    const answer = await client.fetch(target, { method: 'GET', headers })
    if (isPassing(answer.status) && !isLast) {
      answer.drop()
      return { document: null, waitMs: readRetryAfter(answer) }
    }
    const { status } = answer
    return {
      document: { status, headers: answer.headers, bytes: await read(answer) },
      waitMs: null,
    }
  } catch (thrown) {
    const failure = describeFailure(thrown)
    const isHopeless = failure === null || failure.isFinal || NO_TLS.has(failure.code)
    if (isLast || isHopeless) throw thrown
    return LATER
  }
}

const NO_TLS: ReadonlySet<string> = new Set([
  'EPROTO',
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
])

/** What a server that speaks plain http does with a TLS greeting. */
export function isTlsUnknown(thrown: unknown): boolean {
  const failure = describeFailure(thrown)
  return failure !== null && (NO_TLS.has(failure.code) || failure.isHangUp)
}

async function read(answer: HttpAnswer): Promise<Buffer> {
  const started = performance.now()
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body()) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw stopped(`its answer is larger than ${MAX_BYTES} bytes`)
    if (performance.now() - started > LONGEST_MS) throw stopped('its answer takes too long')
    chunks.push(Buffer.from(chunk))
  }
  return Buffer.concat(chunks)
}

const stopped = (words: string) => Object.assign(new Error(words), { code: STALLED })
