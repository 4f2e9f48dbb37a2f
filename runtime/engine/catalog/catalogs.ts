/** The image catalog of the cache service: followed in the background, kept across restarts. */
import { open } from 'node:fs/promises'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { replaceFile } from '#kit/host/folders.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { Environment } from '#kit/host/shell.ts'
import { linger, settle } from '#kit/host/watch.ts'
import { fetchNews } from '#kit/net/json-client.ts'
import { MAX_WAIT_SECONDS } from '#kit/net/rules/event-stream.ts'
import { parseHttpTarget, renderSafeUrl } from '#kit/net/rules/image-location.ts'
import { renderCacheBase } from './rules/cache-entry.ts'
import {
  type CatalogList,
  parseCatalogDocument,
  type KeptCatalog,
  parseKeptCatalog,
  renderKeptCatalog,
} from './rules/manifest.ts'
import type { CatalogSnapshot } from './rules/catalog.ts'

export interface FollowedCatalog {
  /** Never waits. The same object until something changes. */
  snapshot(): CatalogSnapshot
  /** The new snapshot has `error` set where this failed. */
  refresh(): Promise<CatalogSnapshot>
  /**
   * For decisions that must not be outdated: waits at most a moment. Undefined: the service reports
   * its changes. Absent: always current.
   */
  renew?(): Promise<unknown> | undefined
}

interface CatalogDependencies {
  url(): string | null
  readonly kept: KeptCatalogs
  now(): Date
  readonly log: { warn(message: string): void }
  readonly changes: Changes
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  /** Milliseconds. */
  readonly staleMs?: number
  /** For one whole answer. */
  readonly timeoutMs?: number
}

type LiveCatalog = FollowedCatalog & AsyncDisposable

const MAX_BYTES = 16 * 1024 * 1024
/** Machines that ask at one moment share one look. */
const FRESH_MS = 1000
const RENEW_WAIT_MS = 1000
const NOTHING: CatalogList = { entries: [], skipped: [] }
const NOT_SET = 'no cache service is set; use the settings page or FLASHER_WITHCACHE_URL'

interface Held {
  /** Empty: none is set. */
  readonly base: string
  readonly list: CatalogList
  readonly fetchedAt: string | null
  readonly etag: string | null
  readonly error: string | null
  /** The service can hold an answer until something changes. */
  readonly canWait: boolean
}

const nothingOf = (base: string): Held => ({
  base,
  list: NOTHING,
  fetchedAt: null,
  etag: null,
  error: base === '' ? NOT_SET : 'not fetched yet',
  canWait: false,
})

/** Reads `url` before each use, so that a change of the setting counts at once. */
export async function createCatalog(dependencies: CatalogDependencies): Promise<LiveCatalog> {
  const { changes, log, staleMs = 60_000 } = dependencies
  const closing = new AbortController()
  const { signal } = closing
  const shelf = createShelf(dependencies, await restore(dependencies))
  let askedAt = -Infinity
  let flight: { readonly base: string; readonly done: Promise<void> } | null = null

  async function load(base: string): Promise<void> {
    rebase()
    const next = await ask(dependencies, shelf.held(), signal)
    askedAt = performance.now()
    if (!signal.aborted) await shelf.take(base, next)
    follower.wake()
  }

  /** One at a time; a second one only for another address. */
  async function refresh(): Promise<CatalogSnapshot> {
    const base = baseOf(dependencies)
    if (base !== '' && flight?.base !== base) {
      const mine = {
        base,
        done: load(base).finally(() => {
          if (flight === mine) flight = null
        }),
      }
      flight = mine
    }
    await flight?.done
    rebase()
    return shelf.shown()
  }

  const refreshQuietly = () => {
    refresh().catch((thrown: unknown) => log.warn(`catalog: ${renderError(thrown)}`))
  }
  const follower = startFollower({
    canFollow: () => shelf.canFollow(),
    awaitNews: (ending) => waitForNews(dependencies, shelf, ending),
    onFailure: refreshQuietly,
    signal,
  })
  function rebase(): boolean {
    const isOther = shelf.rebase()
    if (isOther) follower.restart()
    return isOther
  }
  const follow = () => {
    if (rebase()) refreshQuietly()
  }
  const stopListening = changes.listen(follow, ['settings'])
  const timer = setInterval(refreshQuietly, staleMs)
  timer.unref()
  refreshQuietly()

  return {
    snapshot() {
      follow()
      return shelf.shown()
    },
    refresh,
    renew() {
      follow()
      const isFresh = follower.isConnected() || performance.now() - askedAt < FRESH_MS
      return isFresh || shelf.held().base === '' ? undefined : settle(refresh(), RENEW_WAIT_MS)
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      stopListening()
      closing.abort()
      await flight?.done.catch(() => {})
      await follower.end()
    },
  }
}

type Shelf = ReturnType<typeof createShelf>

function createShelf(dependencies: CatalogDependencies, first: Held) {
  const { kept, changes, log, url } = dependencies
  let held = first
  let shown = snapshotOf(held)
  /** The setting for which `held` was last checked, as each contact asks. */
  let checked: string | null | undefined

  function show(next: Held) {
    const before = held
    held = next
    shown = snapshotOf(next)
    const isNews = before.list !== next.list || before.error !== next.error
    if (next.error !== null && next.error !== before.error && next.base !== '') {
      log.warn(`catalog: ${next.error}`)
    }
    if (isNews) changes.announce({ topic: 'catalog' })
  }

  return {
    held: () => held,
    shown: () => shown,
    canFollow: () => held.canWait && held.error === null && held.base === baseOf(dependencies),
    /** True: something was held of another service. */
    rebase(): boolean {
      const set = url()
      if (set === checked) return false
      checked = set
      const base = renderCacheBase(set ?? '')
      if (held.base === base) return false
      show(nothingOf(base))
      return true
    },
    /** Unless another service is set by now. */
    async take(base: string, next: CatalogOutcome) {
      if (baseOf(dependencies) !== base) return
      show(next.held)
      if (next.keep !== null) await keep(kept, next.keep, log)
    },
  }
}

/** For a service that says it waits, and does not. */
const LEAST_WAIT_MS = 1000

/** Throws where it was not answered. */
async function waitForNews(
  dependencies: CatalogDependencies,
  shelf: Shelf,
  signal: AbortSignal,
): Promise<void> {
  const before = shelf.held()
  const since = performance.now()
  const next = await ask(dependencies, before, signal, MAX_WAIT_SECONDS)
  if (next.held.error !== null) throw new Error(next.held.error)
  if (signal.aborted) return
  if (next.keep !== null) await shelf.take(before.base, next)
  // No news: somebody else may have fetched something newer meanwhile.
  else await linger(Math.max(0, LEAST_WAIT_MS - (performance.now() - since)), signal)
}

const baseOf = ({ url }: CatalogDependencies) => renderCacheBase(url() ?? '')

const snapshotOf = ({ list, fetchedAt, error }: Held): CatalogSnapshot => ({
  ...list,
  fetchedAt,
  error,
})

interface CatalogOutcome {
  readonly held: Held
  /** Null: nothing new to keep. */
  readonly keep: KeptCatalog | null
}

/** Never throws for another machine's failure: then the old list has an error. */
async function ask(
  { env, now, timeoutMs = 10_000 }: CatalogDependencies,
  before: Held,
  signal: AbortSignal,
  waitSeconds = 0,
): Promise<CatalogOutcome> {
  const { base, etag } = before
  const shown = renderSafeUrl(base)
  try {
    const target = parseHttpTarget(`${base}/catalog`)
    if (target === null) return failed(before, `not the address of a cache service: ${shown}`)
    const name = `the catalog of ${shown}`
    const bounds = { maxBytes: MAX_BYTES, timeoutMs, signal, waitSeconds }
    const { document: answer, canWait } = await fetchNews({ target, name, env, etag, ...bounds })
    const fetchedAt = now().toISOString()
    if (answer === null) return { held: { ...before, fetchedAt, error: null, canWait }, keep: null }
    const list = parseCatalogDocument(answer.text, base)
    if (!list.ok) return failed(before, `${shown}: ${list.refusal}`)
    const known = { base, fetchedAt, etag: answer.etag }
    return {
      held: { ...known, list: list.value, error: null, canWait },
      keep: { ...known, text: answer.text },
    }
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    return failed(before, [thrown.message, thrown.hint].filter(Boolean).join('. '))
  }
}

const failed = (before: Held, error: string): CatalogOutcome => ({
  held: { ...before, error },
  keep: null,
})

/** Only what was kept of the service that is set. */
async function restore(dependencies: CatalogDependencies): Promise<Held> {
  const base = baseOf(dependencies)
  const found = await dependencies.kept.read()
  if (found === null || found.base !== base) return nothingOf(base)
  const list = parseCatalogDocument(found.text, base)
  if (!list.ok) return nothingOf(base)
  const { fetchedAt, etag } = found
  return { base, list: list.value, fetchedAt, etag, error: null, canWait: false }
}

/** Best effort: it is only missing after a restart. */
async function keep(kept: KeptCatalogs, found: KeptCatalog, log: CatalogDependencies['log']) {
  await kept.write(found).catch((thrown: unknown) => {
    log.warn(`the catalog cannot be kept for the next start: ${renderError(thrown)}`)
  })
}

// The last good catalog, kept in the state directory for the next start ("active manifest").

const MAX_KEPT_BYTES = 64 * 1024 * 1024

type KeptCatalogs = ReturnType<typeof createKeptCatalogs>

export function createKeptCatalogs(path: string) {
  return {
    /** Null: none that can be read; it is fetched again. */
    async read(): Promise<KeptCatalog | null> {
      try {
        await using handle = await open(path, 'r')
        const { size } = await handle.stat()
        return size > MAX_KEPT_BYTES ? null : parseKeptCatalog(await handle.readFile('utf8'))
      } catch {
        return null // Whatever is wrong with the copy: the cache service has the original.
      }
    },
    async write(kept: KeptCatalog): Promise<void> {
      const text = renderKeptCatalog(kept)
      if (text !== null) await replaceFile(path, text)
    },
  }
}

function startFollower(dependencies: {
  canFollow(): boolean
  /** Resolves when the service has answered, and its answer counts; the signal ends it. */
  awaitNews(ending: AbortSignal): Promise<void>
  onFailure(): void
  readonly signal: AbortSignal
}) {
  const { canFollow, awaitNews, onFailure, signal } = dependencies
  let woken = Promise.withResolvers<void>()
  let isConnected = false
  let asking = new AbortController()

  async function follow() {
    while (!signal.aborted) {
      if (canFollow()) {
        isConnected = true
        const isAnswered = await awaitNews(AbortSignal.any([signal, asking.signal])).then(
          () => true,
          () => false,
        )
        if (isAnswered) continue
        isConnected = false
        if (!signal.aborted) onFailure()
      }
      isConnected = false
      if (signal.aborted) return
      await woken.promise
      woken = Promise.withResolvers()
    }
  }

  const work = follow()
  return {
    isConnected: () => isConnected,
    restart() {
      isConnected = false
      asking.abort()
      asking = new AbortController()
    },
    wake: () => woken.resolve(),
    /** The signal must be aborted before. */
    async end() {
      woken.resolve()
      await work
    },
  }
}
