/** A client for the operator's API of a cache service: lists, adds and removes images. */
import { Fault, type FaultCode, renderError } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { type CapturedMachine, type ImageUser, renderCacheBase } from './rules/cache-entry.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { type HttpTarget, parseHttpTarget, renderSafeUrl } from '#kit/net/rules/image-location.ts'
import { describeFailure, parseDetail } from '#kit/net/rules/network-failure.ts'
import { askOnce, type DocumentRequest } from '#kit/net/json-client.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { Change, Changes } from '#kit/host/changes.ts'

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

/** Calls reject with a Fault: `upstream-failed` without an answer, else in the cache's words. */
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
      readonly users?: readonly ImageUser[]
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

const START = 'Start "flasher-cache", or set [cache] host and port.'

function explain(base: string, thrown: unknown): unknown {
  const failure = describeFailure(thrown)
  if (failure === null) return thrown
  const { code, reason, hint = START } = failure
  const where = `no cache answers at ${renderSafeUrl(base).replace(/\/$/, '')}`
  const words = code === 'ECONNREFUSED' ? where : `${where}: ${reason}`
  return new Fault('upstream-failed', words, { hint, cause: thrown })
}

/** Reports to the cache service which images machines are bound to, so that it keeps those. */
interface PinnerDependencies {
  url(): string | null
  /** Null: nothing is reported. */
  token(): Promise<string | null>
  bound(): Promise<readonly (string | null)[]>
  /** Refs of channels, kept although no machine has them. */
  promised?(): readonly string[]
  captured?(): Promise<readonly CapturedMachine[]>
  /** Of each image, the first by name. */
  users?(): Promise<readonly ImageUser[]>
  /** The cache's name for this server. */
  readonly holder: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly changes: Changes
  readonly log: { warn(message: string): void }
  readonly waitMs?: number
  readonly againMs?: number
}

/**
 * Reports at the start, soon after a machine has changed, and regularly. Best effort: without
 * reports the service goes by uses. A refused report is repeated only after a change of settings or
 * catalog, an unanswered one after the next change, or half a minute.
 */
export function createPinner(dependencies: PinnerDependencies): AsyncDisposable {
  const { env, changes, holder, log, waitMs = 2000, againMs = 3_600_000 } = dependencies
  const { promised = () => [], captured: listCaptured = async () => [] } = dependencies
  const { users: listUsers = async () => [] } = dependencies
  const closing = new AbortController()
  let reported = ''
  let refused = ''
  /** Counts the changes after which a refused report may be accepted. */
  let chances = 0
  const complaints = new Set<string>()
  let waiting: NodeJS.Timeout | undefined
  let retry: NodeJS.Timeout | undefined
  let work: Promise<void> = Promise.resolve()

  async function report() {
    // A later change is another chance.
    const chance = chances
    const [base, token] = [renderCacheBase(dependencies.url() ?? ''), await dependencies.token()]
    if (base === '' || token === null || closing.signal.aborted) return
    const bound = await dependencies.bound()
    const { refs, machines } = countMachines(bound, promised())
    const captured = await listCaptured()
    const users = await listUsers()
    const words = JSON.stringify([base, refs, machines, captured, users])
    if (words === reported || `${chance} ${words}` === refused) return
    const client = createCacheClient({ base, token, env, signal: closing.signal })
    const answer = await client.pin({ holder, refs, machines, captured, users })
    if (answer.ok) {
      reported = words
      complaints.clear()
      return
    }
    refused = `${chance} ${words}`
    // Another implementation may have no pins.
    if (answer.refusal.code !== 'not-found') complain(answer.refusal, 'refused')
  }

  /** `how`: one code may stand for a refusal and for silence. */
  function complain(thrown: unknown, how: 'refused' | 'failed') {
    const code = thrown instanceof Fault ? thrown.code : null
    const kind = `${how} ${code} ${dependencies.url()}`
    if (closing.signal.aborted || complaints.has(kind)) return
    complaints.add(kind)
    log.warn(
      `could not report to the cache service which images are needed: ${renderError(thrown)}`,
    )
  }

  function schedule() {
    waiting ??= setTimeout(() => {
      waiting = undefined
      work = work.then(report).catch((thrown: unknown) => {
        complain(thrown, 'failed')
        clearTimeout(retry)
        retry = setTimeout(schedule, RETRY_MS).unref()
      })
    }, waitMs).unref()
  }

  const stopListening = changes.listen(
    ({ topic }) => {
      if (topic !== 'machine') chances += 1
      schedule()
    },
    ['machine', ...RELEVANT],
  )
  const again = setInterval(() => {
    reported = ''
    chances += 1
    schedule()
  }, againMs).unref()
  schedule()

  return {
    async [Symbol.asyncDispose]() {
      closing.abort()
      stopListening()
      clearInterval(again)
      clearTimeout(waiting)
      await work
      clearTimeout(retry)
    },
  }
}

const RETRY_MS = 30_000

/** A catalog that changed means that its service answers, perhaps for the first time. */
const RELEVANT = ['settings', 'catalog'] as const satisfies readonly Change['topic'][]

function countMachines(bound: readonly (string | null)[], promised: readonly string[]) {
  const counts = new Map(promised.map((ref) => [ref, 0]))
  for (const ref of bound) if (ref !== null) counts.set(ref, (counts.get(ref) ?? 0) + 1)
  const refs = [...counts.keys()].toSorted()
  return { refs, machines: refs.map((ref) => counts.get(ref) ?? 0) }
}
