/** Keeps images that machines use in their registries, by tags of our own, where writing is allowed. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import {
  blobKeyOf,
  keyOf,
  sourceOf,
  type CacheEntry,
} from '../../engine/catalog/rules/cache-entry.ts'
import { decideFormat } from '../../engine/catalog/rules/catalog.ts'
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import type { Environment } from '../../kit/host/shell.ts'
import { linger } from '../../kit/host/watch.ts'
import {
  createRegistryWriter,
  type RepositoryWriter,
} from '../../kit/net/registry/registry-writer.ts'
import {
  renderImageManifest,
  type StoredImage,
} from '../../kit/net/registry/rules/image-manifest.ts'
import { parseOrasRef, type OrasRef } from '../../kit/net/registry/rules/oras.ts'
import type { BlobIndex } from '../blobs/blob-index.ts'
import type { Pins } from './pins.ts'

export interface RegistryPinning {
  /** Names proxies, FLASHER_CA_FILE, FLASHER_REGISTRY_HTTP and where credentials are. */
  readonly env: Environment
  isEnabled(): boolean
  /** Milliseconds between two looks; smaller in tests. */
  readonly tickMs?: number
  /** Milliseconds before the first repeat of a request; smaller in tests. */
  readonly retryMs?: number
}

interface TagDependencies extends RegistryPinning {
  readonly records: Storage
  readonly index: BlobIndex
  readonly pins: Pick<Pins, 'has'>
  readonly log: { info(message: string): void; warn(message: string): void }
}

const TICK_MS = 60_000
/** Somebody else may have removed a tag; and who could not write may be allowed to by now. */
const AGAIN_MS = { kept: 60 * 60_000, failed: 5 * 60_000 } as const
const STALL_MS = 30_000
const KEY = 'registry-pins'

const KeptSchema = z.object({ host: z.string(), repository: z.string(), sha256: z.string() })
const Kept = z.array(KeptSchema).catch([])
type KeptTag = Readonly<z.infer<typeof KeptSchema>>

interface WantedTag extends KeptTag {
  readonly image: StoredImage
}

const idOf = ({ host, repository, sha256 }: KeptTag) => `${host}/${repository}:pin-${sha256}`
const refOf = ({ host, repository, sha256 }: KeptTag): OrasRef => ({
  host,
  repository,
  version: { kind: 'tag', tag: `pin-${sha256}` },
})

/** Starts to keep the tags; all of it is best effort, and what fails is in the log once. */
export async function startRegistryPins(parts: TagDependencies): Promise<AsyncDisposable> {
  const { records, index, pins, log, env, tickMs = TICK_MS, retryMs = 500 } = parts
  const closing = new AbortController()
  const { signal } = closing
  const kept = new Map(
    Kept.parse(await records.getItem(KEY)).map((tag) => [idOf(tag), tag] as const),
  )
  /** When each is looked at again, in milliseconds of the monotonic clock. */
  const dueAt = new Map<string, number>()
  const warn = createWarnings(log)
  /** Registries that did not answer in this look: the rest of their tags waits for the next one. */
  const unreachable = new Set<string>()

  const isDue = (id: string) => performance.now() >= (dueAt.get(id) ?? 0)
  const save = () => records.setItem(KEY, JSON.stringify([...kept.values()]))

  async function open(tag: KeptTag, act: (writer: RepositoryWriter) => Promise<void>) {
    const id = idOf(tag)
    if (unreachable.has(tag.host)) return
    dueAt.set(id, performance.now() + AGAIN_MS.failed)
    await using registry = createRegistryWriter({ env, signal, stallMs: STALL_MS, retryMs })
    try {
      await act(await registry.open(refOf(tag)))
    } catch (thrown) {
      // A refusal is of one repository; what the network did is of them all.
      if (thrown instanceof Fault && thrown.cause !== undefined) unreachable.add(tag.host)
      if (!signal.aborted) warn(`the image cannot be kept as ${id}: ${renderError(thrown)}`)
    }
  }

  const keep = (tag: WantedTag) =>
    open(tag, async (writer) => {
      const blob = { digest: `sha256:${tag.sha256}`, sizeBytes: tag.image.sizeBytes }
      const isThere = (await writer.hasManifest()) || (await store(writer, tag.image, blob))
      const id = idOf(tag)
      if (!isThere) {
        warn(`${id} cannot be made: the registry has not got this image any more`)
        return
      }
      const { host, repository, sha256 } = tag
      if (!kept.has(id)) log.info(`images in use: ${id} keeps ${tag.image.name}`)
      kept.set(id, { host, repository, sha256 })
      dueAt.set(id, performance.now() + AGAIN_MS.kept)
      await save()
    })

  const release = (tag: KeptTag) =>
    open(tag, async (writer) => {
      const id = idOf(tag)
      const refusal = await writer.removeTag()
      if (refusal === null) log.info(`images in use: ${id} is removed`)
      else warn(`the registry does not let ${id} be removed (${refusal}): remove it there`)
      kept.delete(id)
      dueAt.delete(id)
      await save()
    })

  async function look() {
    unreachable.clear()
    const wanted = listWanted(index, pins)
    for (const [id, tag] of wanted) if (isDue(id)) await keep(tag)
    const over = [...kept.entries()].filter(([id]) => !wanted.has(id))
    for (const [, tag] of over) await release(tag)
  }

  async function run() {
    while (!signal.aborted) {
      if (parts.isEnabled()) await look()
      await linger(tickMs, signal)
    }
  }

  const running = run().catch((thrown: unknown) => warn(renderError(thrown)))
  return {
    async [Symbol.asyncDispose]() {
      closing.abort()
      await running
    },
  }
}

/** Says each thing once. */
function createWarnings(log: TagDependencies['log']) {
  const said = new Set<string>()
  return (message: string) => {
    if (!said.has(message)) log.warn(message)
    said.add(message)
  }
}

/** False: the registry does not have the bytes any more. */
async function store(
  writer: RepositoryWriter,
  image: StoredImage,
  blob: Parameters<RepositoryWriter['hasBlob']>[0],
): Promise<boolean> {
  if (!(await writer.hasBlob(blob))) return false
  await writer.putConfig()
  return (await writer.putManifest(renderImageManifest(image, 'in-use'))) !== null
}

/** The images that are here, come from a registry, and are used by machines. */
function listWanted(index: BlobIndex, pins: Pick<Pins, 'has'>): ReadonlyMap<string, WantedTag> {
  const tags = index.entries().flatMap((entry) => wantedOf(index, pins, entry) ?? [])
  return new Map(tags.map((tag) => [idOf(tag), tag]))
}

function wantedOf(index: BlobIndex, pins: Pick<Pins, 'has'>, entry: CacheEntry): WantedTag | null {
  const ref = parseOrasRef(sourceOf(entry))
  const bound = blobKeyOf(entry.src)
  const stored = index.find(keyOf(entry))
  if (!ref.ok || bound === null || stored === null || !pins.has(bound)) return null
  const { host, repository } = ref.value
  const { sha256, sizeBytes, checkedIndex = null } = stored
  const names = [entry.name, entry.resolved_src, entry.src]
  const image: StoredImage = {
    sha256,
    sizeBytes,
    indexSha256: checkedIndex,
    format: decideFormat(entry.format, names),
    arch: entry.arch ?? null,
    name: fileNameFor(entry.name),
  }
  return { host, repository, sha256, image }
}

/** It becomes a file name wherever the image is pulled, and an entry may be called anything. */
const fileNameFor = (name: string): string =>
  name.replaceAll(/[\p{C}\p{Zl}\p{Zp}/\\]/gu, '_').replace(/^\.+/, '_')
