/** Talks to a cache service as its operator does: what it lists, and what it is to list. */
import { ofetch, FetchError } from 'ofetch'
import { Fault, type FaultCode } from '../core/fault.ts'

export interface CacheClient {
  /** `GET /catalog?all`, as it came. */
  list(): Promise<unknown>
  add(entry: object): Promise<unknown>
  download(name: string, options: { readonly force: boolean }): Promise<void>
  remove(name: string, options: { readonly force: boolean }): Promise<void>
  pin(holder: string, refs: readonly string[]): Promise<void>
}

export interface CacheClientOptions {
  /** `http://host:port`. */
  readonly base: string
  readonly token: string | null
  readonly timeoutMs?: number
  /** Ends what is asked. */
  readonly signal?: AbortSignal
}

export function createCacheClient({
  base,
  token,
  timeoutMs = 15_000,
  signal,
}: CacheClientOptions): CacheClient {
  const ask = async (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) => {
    try {
      const answer: unknown = await ofetch(`${base}${path}`, {
        method,
        ...(body === undefined ? {} : { body: { ...body } }),
        headers: token === null ? {} : { authorization: `Bearer ${token}` },
        retry: 0,
        timeout: timeoutMs,
        redirect: 'error',
        ...(signal === undefined ? {} : { signal }),
      })
      return answer
    } catch (thrown) {
      throw thrown instanceof FetchError ? describe(thrown, base) : thrown
    }
  }
  return {
    list: () => ask('GET', '/catalog?all'),
    add: (fields) => ask('POST', '/catalog/entries', fields),
    async download(name, { force }) {
      await ask('POST', `${entry(name)}/download${forced(force)}`)
    },
    async remove(name, { force }) {
      await ask('DELETE', `${entry(name)}${forced(force)}`)
    },
    async pin(holder, refs) {
      await ask('POST', '/pins', { holder, refs })
    },
  }
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

function describe(error: FetchError, base: string): Fault {
  const { status, data } = error
  if (status === undefined) {
    return new Fault('upstream-failed', `no cache answers at ${base}`, {
      hint: 'Start one with "flasher-cache", or say where it is with [cache] host and port.',
      cause: error,
    })
  }
  const words = detailOf(data) ?? `HTTP ${status}`
  const hint =
    status === 401 ? 'Run it as the user who runs the cache, or set cache.token.' : undefined
  return new Fault(CODES[status] ?? 'upstream-failed', words, { hint, cause: error })
}

function detailOf(data: unknown): string | null {
  if (typeof data !== 'object' || data === null || !('detail' in data)) return null
  const { detail } = data
  if (typeof detail === 'string') return detail.slice(0, 1000)
  return Array.isArray(detail) ? detail.map(renderField).join('; ').slice(0, 1000) : null
}

function renderField(field: unknown): string {
  if (typeof field !== 'object' || field === null || !('msg' in field)) return 'invalid'
  const loc = 'loc' in field && Array.isArray(field.loc) ? field.loc.slice(1).join('.') : ''
  return [loc, String(field.msg)].filter(Boolean).join(': ')
}
