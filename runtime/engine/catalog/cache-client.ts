/** A client for the operator's API of a cache service: lists, adds and removes images. */
import { Fault, type FaultCode } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { CapturedMachine } from './rules/captured-machine.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { type HttpTarget, parseHttpTarget, renderSafeUrl } from '#kit/net/rules/image-location.ts'
import { describeFailure } from '#kit/net/rules/network-failure.ts'
import { parseDetail } from '#kit/net/rules/refusal-detail.ts'
import { askOnce, type DocumentRequest } from '#kit/net/json-client.ts'
import type { Environment } from '#kit/host/shell.ts'

export type CacheClient = ReturnType<typeof createCacheClient>

interface CacheClientOptions {
  /** `http://host:port`. */
  readonly base: string
  readonly token: string | null
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env?: Environment
  /** For one whole answer. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

const MAX_BYTES = 16 * 1024 * 1024

/**
 * Calls reject with a Fault: `upstream-failed` without an answer in time, one in the cache's words
 * where it refuses.
 */
export function createCacheClient(options: CacheClientOptions) {
  const { base, env = {}, timeoutMs = 15_000, signal } = options
  type Method = NonNullable<DocumentRequest['method']>

  async function ask(method: Method, path: string, body?: object): Promise<Result<unknown, Fault>> {
    const { status, bytes } = await askOnce(env, targetOf(options, path), {
      method,
      body,
      headers: { accept: 'application/json' },
      // The token goes only to the address that was set.
      redirects: 'answer',
      maxBytes: MAX_BYTES,
      timeoutMs,
      signal,
    }).catch((thrown: unknown) => {
      throw signal?.aborted === true ? thrown : explain(base, thrown)
    })
    const text = bytes.toString('utf8')
    return status >= 200 && status < 300 ? accept(parseJson(text)) : refuse(refusalOf(status, text))
  }

  async function obtain(...request: Parameters<typeof ask>): Promise<unknown> {
    const answer = await ask(...request)
    if (!answer.ok) throw answer.refusal
    return answer.value
  }

  return {
    list: () => obtain('GET', '/catalog?all'),
    add: (fields: object) => obtain('POST', '/catalog/entries', fields),
    download: (name: string, { force }: Forcing) =>
      obtain('POST', `${entry(name)}/download${forced(force)}`),
    remove: (name: string, { force }: Forcing) =>
      obtain('DELETE', `${entry(name)}${forced(force)}`),
    makeUploadToken: (name: string) => obtain('POST', '/captures/tokens', { name }),
    listCaptures: () => obtain('GET', '/captures'),
    /** Returns a refusal, as not every cache knows pins. */
    async pin(body: {
      readonly holder: string
      readonly refs: readonly string[]
      readonly machines: readonly number[]
      readonly captured: readonly CapturedMachine[]
    }): Promise<Result<null, Fault>> {
      const answer = await ask('POST', '/pins', body)
      return answer.ok ? accept(null) : answer
    },
  }
}

function targetOf({ base, token }: CacheClientOptions, path: string): HttpTarget {
  const target = parseHttpTarget(`${base}${path}`)
  if (target === null) {
    throw new Fault('input-invalid', `not the address of a cache service: ${renderSafeUrl(base)}`)
  }
  return token === null ? target : { ...target, authorization: `Bearer ${token}` }
}

interface Forcing {
  readonly force: boolean
}

const entry = (name: string) => `/catalog/entries/${encodeURIComponent(name)}`
const forced = (force: boolean) => (force ? '?force=1' : '')

const CODES: Readonly<Record<number, FaultCode>> = {
  400: 'input-invalid',
  401: 'login-required',
  403: 'forbidden',
  404: 'not-found',
  409: 'conflict',
  422: 'input-invalid',
}

function refusalOf(status: number, body: string): Fault {
  const hint =
    status === 401 ? 'Run it as the user who runs the cache, or set cache.token.' : undefined
  const words = parseDetail(body) ?? `HTTP ${status}`
  return new Fault(CODES[status] ?? 'upstream-failed', words, { hint })
}

const START = 'Start one with "flasher-cache", or say where it is with [cache] host and port.'

function explain(base: string, thrown: unknown): unknown {
  const failure = describeFailure(thrown)
  if (failure === null) return thrown
  const { code, reason, hint = START } = failure
  const where = `no cache answers at ${renderSafeUrl(base).replace(/\/$/, '')}`
  const words = code === 'ECONNREFUSED' ? where : `${where}: ${reason}`
  return new Fault('upstream-failed', words, { hint, cause: thrown })
}
