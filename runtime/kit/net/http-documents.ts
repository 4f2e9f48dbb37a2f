/** Fetches small texts from web servers, again only when they have changed. */
import { decodeList } from '#kit/foundation/checksum.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { CAN_WAIT } from './rules/event-stream.ts'
import type { HttpTarget } from './rules/image-location.ts'
import { describeFailure } from './rules/network-failure.ts'
import { askOnce, type DocumentAnswer, type DocumentRequest } from './json-client.ts'
import type { Environment } from '#kit/host/shell.ts'

interface DocumentQuery extends Pick<DocumentRequest, 'maxBytes' | 'timeoutMs' | 'signal'> {
  readonly target: HttpTarget
  /** Safe to show. */
  readonly name: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  /** The one of the copy that we hold. */
  readonly etag: string | null
  /** For so many seconds the server may wait for a change of that copy, if it can; absent: it answers at once. */
  readonly waitSeconds?: number
}

interface TextDocument {
  readonly text: string
  readonly etag: string | null
}

/**
 * Null: the copy of that `etag` is up to date. Rejects with a Fault `input-missing` that says why
 * there is none.
 */
export const fetchDocument = async (query: DocumentQuery): Promise<TextDocument | null> =>
  (await fetchNews(query)).document

interface News {
  /** Null: the copy of that `etag` is up to date. */
  readonly document: TextDocument | null
  /** Whether the server would wait for a change. */
  readonly canWait: boolean
}

export async function fetchNews(query: DocumentQuery): Promise<News> {
  const { target, name, env, etag, waitSeconds = 0, ...given } = query
  const bounds = { ...given, timeoutMs: given.timeoutMs + waitSeconds * 1000 }
  const headers = {
    ...(etag === null ? {} : { 'if-none-match': etag }),
    ...(waitSeconds === 0 ? {} : { prefer: `wait=${waitSeconds}` }),
  }
  const answer = await askOnce(env, target, { ...bounds, headers }).catch((thrown: unknown) => {
    const failure = describeFailure(thrown)
    if (failure === null) throw thrown
    throw unreachable(name, failure.reason, thrown, failure.hint)
  })
  const canWait = answer.headers[CAN_WAIT.name] === CAN_WAIT.value
  if (answer.status === 304 && etag !== null) return { document: null, canWait }
  if (answer.status !== 200) throw unreachable(name, `HTTP ${answer.status}`)
  return { document: { text: decodeList(answer.bytes), etag: etagOf(answer) }, canWait }
}

/**
 * Tells whether such a failure means that a server answered, only not with the document. A failure
 * of the network has a cause.
 */
export const isAnswered = (thrown: unknown): boolean =>
  thrown instanceof Fault && thrown.code === 'input-missing' && thrown.cause === undefined

/** It is sent back as it came, so it is taken only in a harmless form. */
function etagOf({ headers: { etag } }: DocumentAnswer): string | null {
  return etag !== undefined && /^(W\/)?"[\x21\x23-\x7e]{0,512}"$/.test(etag) ? etag : null
}

const unreachable = (name: string, reason: string, cause?: unknown, hint?: string) =>
  new Fault('input-missing', `${name} cannot be read: ${reason}`, { cause, hint })
