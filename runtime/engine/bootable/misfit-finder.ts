/** Whether machines would start from an image: what the cache's images start from, read once when somebody asks. */
import { setTimeout as sleep } from 'node:timers/promises'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { renderCacheBase } from '#engine/catalog/rules/cache-entry.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { createQueue } from '#kit/host/queue.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import { readImageBoot } from './image-boot.ts'
import { explainMisfit, type ImageBoot } from './rules/boot-facts.ts'

export type MisfitFinder = ReturnType<typeof createMisfitFinder>

interface MisfitDependencies {
  readonly env: Environment
  /** Null: there is no cache. */
  cacheUrl(): string | null
}

/** A question does not wait longer; the next one has the answer. */
const WAIT_MS = 1500
const READ_MS = 30_000
/** Images of one question; others are not looked at. */
const MAX_ASKED = 20
/** The oldest goes first. */
const MAX_KNOWN = 1000

export function createMisfitFinder({ env, cacheUrl }: MisfitDependencies) {
  const sources = createSources({ env })
  const known = new Map<string, Promise<ImageBoot | null>>()
  // Each may hold a program of MAX_PROGRAM_BYTES.
  const inTurn = createQueue(2)

  async function fetch({ url, format }: CatalogEntry): Promise<ImageBoot | null> {
    const stored = IMAGE_FORMATS.find((each) => each === format)
    if (stored === undefined) return null
    const signal = AbortSignal.timeout(READ_MS)
    await using source = await sources.open(url, { signal })
    return await readImageBoot(source, stored)
  }

  function read(image: CatalogEntry): Promise<ImageBoot | null> {
    const base = cacheUrl()
    const { sha256, url } = image
    const isCached = base !== null && url.startsWith(`${renderCacheBase(base)}/`)
    if (sha256 === null || !isCached) return Promise.resolve(null)
    const found = known.get(sha256)
    if (found !== undefined) return found
    const reading = inTurn(() => fetch(image)).catch(() => {
      // Only a question: the next one tries again.
      known.delete(sha256)
      return null
    })
    const [oldest] = known.keys()
    if (known.size >= MAX_KNOWN && oldest !== undefined) known.delete(oldest)
    known.set(sha256, reading)
    return reading
  }

  return {
    /** Looks at the images of a question; the answer says why a machine would not start, and the way out. */
    async find(images: readonly (CatalogEntry | null)[]) {
      const asked = [...new Set(images)].filter((image) => image !== null).slice(0, MAX_ASKED)
      const late = sleep(WAIT_MS, null, { ref: false })
      const found = new Map<CatalogEntry | null, ImageBoot | null>(
        await Promise.all(
          asked.map(async (image) => [image, await Promise.race([read(image), late])] as const),
        ),
      )
      /** Null: it would, or nobody can tell so soon. */
      return (
        image: CatalogEntry | null,
        { firmware }: { readonly firmware: FirmwareFacts | null },
      ) => (firmware === null ? null : explainMisfit(found.get(image) ?? null, firmware))
    },
  }
}
