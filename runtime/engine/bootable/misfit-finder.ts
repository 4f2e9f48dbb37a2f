/** Whether machines would start from an image: what the cache's images start from, read once when somebody asks. */
import { setTimeout as sleep } from 'node:timers/promises'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { renderCacheBase } from '#engine/catalog/rules/cache-entry.ts'
import { FORMATS } from '#engine/image/rules/format.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { askOnce } from '#kit/net/json-client.ts'
import { parseHttpTarget } from '#kit/net/rules/image-location.ts'
import { createQueue } from '#kit/host/queue.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import { BootRecordSchema } from './rules/boot-record.ts'
import { readImageBoot } from './image-boot.ts'
import { explainMisfit, type ImageBoot, judgeBoot } from './rules/boot-facts.ts'

export type MisfitFinder = ReturnType<typeof createMisfitFinder>

interface MisfitDependencies {
  readonly env: Environment
  /** Null: there is no cache. */
  cacheUrl(): string | null
  /** Milliseconds; smaller in tests. */
  readonly refusalMs?: number
}

/** A question does not wait longer; the next one has the answer. */
const WAIT_MS = 1500
/** Who may refuse waits longer. */
const REFUSAL_WAIT_MS = 10_000
const READ_MS = 30_000
const MAX_FACTS_BYTES = 1024 * 1024
/** So long, an image that could not be read is not read again. */
const FAILED_MS = 60_000
/** Images of one question; others are not looked at. */
const MAX_ASKED = 20
/** The oldest goes first. */
const MAX_KNOWN = 1000

interface KnownImage {
  readonly reading: Promise<ImageBoot | null>
  /** By performance.now(). */
  readonly since: number
  /** Absent: it is being read. */
  boot?: ImageBoot | null
}

const NEVER: KnownImage = { reading: Promise.resolve(null), since: 0, boot: null }

export function createMisfitFinder({
  env,
  cacheUrl,
  refusalMs = REFUSAL_WAIT_MS,
}: MisfitDependencies) {
  const sources = createSources({ env })
  const known = new Map<string, KnownImage>()
  /** By performance.now(): the cache did not answer in time, so nobody waits for it. */
  let hungUntil = 0
  // Each may hold a program of MAX_PROGRAM_BYTES.
  const inTurn = createQueue(2)

  async function fetch(image: CatalogEntry): Promise<ImageBoot | null> {
    const { url, format } = image
    const stored = IMAGE_FORMATS.find((each) => each === format)
    if (stored === undefined) return null
    const signal = AbortSignal.timeout(READ_MS)
    if (FORMATS[stored].entered === 'at-its-start') return await fetchFacts(image, signal)
    await using source = await sources.open(url, { signal })
    return (await readImageBoot(source, stored)) ?? (await fetchFacts(image, signal))
  }

  /** As the cache found out when it had the whole image; an error until then. */
  async function fetchFacts({ url, sha256 }: CatalogEntry, signal: AbortSignal) {
    const target = parseHttpTarget(`${renderCacheBase(cacheUrl() ?? '')}/catalog/boot/${sha256}`)
    if (target === null) throw new Fault('source-broken', `${url} is not in the cache`)
    const request = { maxBytes: MAX_FACTS_BYTES, timeoutMs: READ_MS, signal }
    const { status, bytes } = await askOnce(env, target, request)
    if (status !== 200) throw new Fault('source-broken', `the cache answers ${status}`)
    return BootRecordSchema.parse(parseJson(bytes.toString())).boot
  }

  function read(image: CatalogEntry): KnownImage {
    const base = cacheUrl()
    const { sha256, url } = image
    const isCached = base !== null && url.startsWith(`${renderCacheBase(base)}/`)
    if (sha256 === null || !isCached) return NEVER
    const found = known.get(sha256)
    if (found !== undefined) return found
    const reading = inTurn(() => fetch(image)).catch(() => {
      setTimeout(() => known.delete(sha256), FAILED_MS).unref()
      return null
    })
    const [oldest] = known.keys()
    if (known.size >= MAX_KNOWN && oldest !== undefined) known.delete(oldest)
    const kept: KnownImage = { reading, since: performance.now() }
    known.set(sha256, kept)
    void reading.then((boot) => {
      kept.boot = boot
      if (boot !== null) hungUntil = 0
    })
    return kept
  }

  /** Null: nobody can tell so soon. */
  async function readSoon(image: CatalogEntry, waitMs: number): Promise<ImageBoot | null> {
    const late = new AbortController()
    const waiting = sleep(waitMs, null, { ref: false, signal: late.signal }).catch(() => null)
    try {
      return await Promise.race([read(image).reading, waiting])
    } finally {
      late.abort()
    }
  }

  return {
    /** Looks at the images of a question; the answer says why a machine would not start, and the way out. */
    async find(images: readonly (CatalogEntry | null)[]) {
      const asked = [...new Set(images)].filter((image) => image !== null).slice(0, MAX_ASKED)
      const found = new Map<CatalogEntry | null, ImageBoot | null>(
        await Promise.all(
          asked.map(async (image) => [image, await readSoon(image, WAIT_MS)] as const),
        ),
      )
      const explain = createExplainer()
      /** Null: it would, or nobody can tell so soon. */
      return (
        image: CatalogEntry | null,
        { firmware }: { readonly firmware: FirmwareFacts | null },
      ) => (firmware === null ? null : explain(found.get(image) ?? null, firmware))
    },

    /** Reads all at once, so that many refusals wait as long as one. */
    expect(images: readonly (CatalogEntry | null)[]) {
      for (const image of images) if (image !== null) read(image)
    },

    /** Why this machine certainly does not start from the image, and the way out; null: it may. */
    async refuse(
      image: CatalogEntry | null,
      { firmware }: { readonly firmware: FirmwareFacts | null },
    ): Promise<string | null> {
      if (image === null) return null
      const asked = read(image)
      if (firmware === null) return null
      const now = performance.now()
      const waitMs = now < hungUntil ? 0 : Math.max(0, asked.since + refusalMs - now)
      const boot = await readSoon(image, waitMs)
      if (asked.boot === undefined && waitMs > 0) hungUntil = performance.now() + READ_MS
      return renderRefusal('Not armed', boot, firmware)
    },

    /** Like `refuse`, of what is known already; what is not will be. */
    recall(image: CatalogEntry, { firmware }: { readonly firmware: FirmwareFacts | null }) {
      const { boot = null } = read(image)
      return firmware === null ? null : renderRefusal('Not flashed', boot, firmware)
    },
  }
}

function renderRefusal(what: string, boot: ImageBoot | null, firmware: FirmwareFacts) {
  const verdict = judgeBoot(boot, firmware)
  return verdict.answer === 'refused'
    ? `${what}: this machine would not start from this image, and this server requires that ([images] require_bootable). ${verdict.why} ${verdict.wayOut}`
    : null
}

/** Thousands of machines have few kinds of firmware, and each list of revoked programs is long. */
function createExplainer() {
  const known = new Map<ImageBoot | null, Map<string, string | null>>()
  return (image: ImageBoot | null, firmware: FirmwareFacts): string | null => {
    const answers = known.get(image) ?? new Map<string, string | null>()
    known.set(image, answers)
    const content = JSON.stringify(firmware)
    const answer = answers.get(content)
    if (answer !== undefined) return answer
    const why = explainMisfit(image, firmware)
    answers.set(content, why)
    return why
  }
}
