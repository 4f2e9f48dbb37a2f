/** Small documents from web servers: bounded in size and time, asked for again only when they changed. */
import { Fault } from '../../core/foundation/fault.ts'
import type { HttpTarget } from '../../core/net/image-location.ts'
import { describeFailure } from '../../core/net/network-failure.ts'
import { createHttpClient, type HttpAnswer } from './http-client.ts'
import type { Environment } from '../host/shell.ts'

interface DocumentQuery {
  readonly target: HttpTarget
  /** Safe to show. */
  readonly name: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly mostBytes: number
  /** For all of it. */
  readonly timeoutMs: number
  /** Of the copy that we hold. */
  readonly etag: string | null
  readonly signal?: AbortSignal
}

type DocumentAnswer =
  | { readonly kind: 'same' }
  | { readonly kind: 'new'; readonly text: string; readonly etag: string | null }

/** A Fault `input-missing` says in words why it could not be had. */
export async function fetchDocument(query: DocumentQuery): Promise<DocumentAnswer> {
  const { target, name, env, etag, timeoutMs } = query
  const late = AbortSignal.timeout(timeoutMs)
  const signal = query.signal === undefined ? late : AbortSignal.any([late, query.signal])
  try {
    await using client = createHttpClient({ env, signal, stallMs: timeoutMs })
    const headers = etag === null ? {} : { 'if-none-match': etag }
    const answer = await client.fetch(target, { method: 'GET', headers })
    if (answer.status === 304 && etag !== null) return dropped(answer)
    if (answer.status !== 200) {
      answer.drop()
      throw unreachable(name, `HTTP ${answer.status}`)
    }
    return { kind: 'new', text: await readText(answer, query), etag: etagOf(answer) }
  } catch (thrown) {
    if (thrown instanceof Fault) throw thrown
    if (late.aborted) throw unreachable(name, `no answer within ${timeoutMs / 1000} s`, thrown)
    const failure = describeFailure(thrown)
    if (failure === null) throw thrown
    throw unreachable(name, failure.reason, thrown, failure.hint)
  }
}

/** Of a failure: whether a server answered, only not with the document. One of the network has a cause. */
export const isAnswered = (thrown: unknown): boolean =>
  thrown instanceof Fault && thrown.code === 'input-missing' && thrown.cause === undefined

async function readText(answer: HttpAnswer, { name, mostBytes }: DocumentQuery): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body()) {
    bytes += chunk.length
    if (bytes > mostBytes) throw unreachable(name, `its answer is larger than ${mostBytes} bytes`)
    chunks.push(Buffer.from(chunk))
  }
  return Buffer.concat(chunks).toString('utf8')
}

function dropped(answer: HttpAnswer) {
  answer.drop()
  return { kind: 'same' } as const
}

/** Handed back as it came, so only of a harmless form. */
function etagOf({ headers }: HttpAnswer): string | null {
  const { etag } = headers
  return etag !== undefined && /^(W\/)?"[\x21\x23-\x7e]{0,512}"$/.test(etag) ? etag : null
}

const unreachable = (name: string, reason: string, cause?: unknown, hint?: string) =>
  new Fault('input-missing', `${name} cannot be read: ${reason}`, { cause, hint })
