/** Looks at the sources of stored images again on a schedule, and notes which moved on. */
import {
  keyOf,
  secretSourceOf,
  type CacheEntry,
  ageOf,
  decideMovedAt,
  hasMovedOn,
} from '#engine/catalog/rules/cache-entry.ts'
import { decideArch } from '#engine/catalog/rules/catalog.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { createQueue } from '#kit/host/queue.ts'
import { checkSent } from '#engine/image/images.ts'
import type { Sources } from '#engine/image/sources/sources.ts'
import type { BlobIndex, StoredSource } from '#cache/blobs/blob-room.ts'
import type { Downloads } from './downloads.ts'

interface UpstreamChecksDependencies {
  readonly sources: Pick<Sources, 'open'>
  readonly index: BlobIndex
  readonly downloads: Pick<Downloads, 'find'>
  /** Infinity: never. */
  upstreamSeconds(): number
  now(): Date
  readonly log: { info(message: string): void; warn(message: string): void }
  /** Milliseconds between two looks at the schedule. */
  readonly upstreamTickMs?: number
}

const AT_ONCE = 2
const TICK_MS = 10_000
/** Longer than any server needs for an answer without a body. */
const MAX_CHECK_MS = 60_000

/** `fetchedAt` names the download; `atMs` is monotonic. */
interface UpstreamCheck {
  readonly fetchedAt: string
  readonly atMs: number
}

export function startUpstreamChecks(parts: UpstreamChecksDependencies): AsyncDisposable {
  const { index, downloads, log, now } = parts
  const closing = new AbortController()
  const enqueue = createQueue(AT_ONCE)
  const checks = new Map<string, UpstreamCheck>()
  const running = new Map<string, Promise<void>>()

  function isDue(key: string, { fetchedAt, lookedAt }: StoredSource, everyMs: number): boolean {
    const nowMs = performance.now()
    const known = checks.get(key)
    const last =
      known?.fetchedAt === fetchedAt
        ? known
        : { fetchedAt, atMs: nowMs - ageOf(Date.parse(lookedAt ?? fetchedAt), now().getTime()) }
    checks.set(key, last)
    return nowMs - last.atMs >= everyMs
  }

  async function check(key: string, entry: CacheEntry): Promise<void> {
    const before = index.find(key)
    if (before === null || closing.signal.aborted) return
    const hasMoved = await ask(parts, entry, before, closing.signal)
    checks.set(key, { fetchedAt: before.fetchedAt, atMs: performance.now() })
    // Downloaded anew or removed meanwhile, or the cache is stopping.
    if (index.find(key) !== before || closing.signal.aborted) return
    const lookedAt = now().toISOString()
    const movedAt = decideMovedAt(before.movedAt ?? null, hasMoved, lookedAt)
    if (movedAt === lookedAt) log.info(`${entry.name}: its source moved on`)
    await index.store(key, { ...before, lookedAt, movedAt })
  }

  function start(key: string, entry: CacheEntry) {
    const work = enqueue(() => check(key, entry))
      .catch((thrown: unknown) => log.warn(`${entry.name}: ${renderError(thrown)}`))
      .finally(() => running.delete(key))
    running.set(key, work)
  }

  function tick() {
    const everyMs = parts.upstreamSeconds() * 1000
    if (everyMs === Infinity) return
    for (const entry of index.entries()) {
      const key = keyOf(entry)
      const stored = index.find(key)
      if (stored === null) checks.delete(key)
      else if (!running.has(key)) {
        if (isDue(key, stored, everyMs) && downloads.find(key) === null) start(key, entry)
      }
    }
  }

  const timer = setInterval(tick, parts.upstreamTickMs ?? TICK_MS).unref()
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      closing.abort(new Fault('cancelled', 'the cache is stopping'))
      await Promise.all(running.values())
    },
  }
}

/** Null: the source did not say, or did not answer with an image. */
async function ask(
  { sources, log }: UpstreamChecksDependencies,
  entry: CacheEntry,
  stored: StoredSource,
  closing: AbortSignal,
): Promise<boolean | null> {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(MAX_CHECK_MS)])
  const names = [entry.name, entry.resolved_src, entry.src]
  const arch = decideArch(entry.arch, names)
  try {
    await using source = await sources.open(secretSourceOf(entry), { signal, arch })
    if (source.sizeBytes === 0) return null
    if (entry.any_content !== true) checkSent({ ...source, name: entry.name })
    return hasMovedOn(stored, source)
  } catch (thrown) {
    if (!closing.aborted) log.info(`${entry.name}: its source was not seen: ${renderError(thrown)}`)
    return null
  }
}
