/** Stores accepted captures in a registry, too, where `[cache] captures_to` names one: each is verified there. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { pushImage } from '../../engine/pack/pusher.ts'
import { renderError } from '../../kit/foundation/fault.ts'
import type { Environment } from '../../kit/host/shell.ts'
import { linger } from '../../kit/host/watch.ts'
import { parseOrasRef, renderOrasRef } from '../../kit/net/registry/rules/oras.ts'
import { nameCopy } from '../rules/copy-name.ts'

export interface RegistryCopying {
  /** Names proxies, FLASHER_CA_FILE, FLASHER_REGISTRY_HTTP and where credentials are. */
  readonly env: Environment
  /** `oras://registry.lab/captures`; empty: captures stay in the cache alone. */
  target(): string
  /** Milliseconds between two looks; smaller in tests. */
  readonly tickMs?: number
  /** Milliseconds until what failed is tried again; smaller in tests. */
  readonly againMs?: number
  /** Milliseconds before the first repeat of a request; smaller in tests. */
  readonly retryMs?: number
}

interface CopyDependencies extends RegistryCopying {
  /** The folder of the cache, where accepted images lie. */
  readonly folder: string
  readonly records: Storage
  now(): Date
  readonly log: { info(message: string): void; warn(message: string): void }
}

const TICK_MS = 10_000
const AGAIN_MS = 5 * 60_000
const KEY = 'registry-copies'
/** The newest ones are listed; the registry itself knows all of them. */
const MAX_COPIES = 100

const CopySchema = z.object({
  name: z.string(),
  sha256: z.string(),
  /** `oras://registry.lab/captures/web-42:0123456789ab`. */
  to: z.string(),
  /** `waiting`: it is tried until it is there. */
  status: z.enum(['waiting', 'stored', 'gone']),
  /** Why the last try failed, or what became of the image; null: nothing is wrong. */
  reason: z.string().nullable(),
  /** ISO time of the last change. */
  at: z.string(),
})
const Copies = z.array(CopySchema).catch([])

/** An accepted capture on its way to a registry, or there. */
export type RegistryCopy = Readonly<z.infer<typeof CopySchema>>

export type RegistryCopies = Awaited<ReturnType<typeof startRegistryCopies>>

/** What is listed, in memory and on disk: a change that cannot be written is none. */
async function openCopyList(records: Storage) {
  let copies: readonly RegistryCopy[] = Copies.parse(await records.getItem(KEY))
  return {
    all: (): readonly RegistryCopy[] => copies,
    async save(next: readonly RegistryCopy[]): Promise<void> {
      const [before, kept] = [copies, next.slice(-MAX_COPIES)]
      copies = kept
      const [written] = await Promise.allSettled([records.setItem(KEY, JSON.stringify(kept))])
      if (written.status === 'fulfilled') return
      if (copies === kept) copies = before
      throw written.reason
    },
  }
}

/** Starts to store what waits. What fails is tried again, and its reason is listed and logged once. */
export async function startRegistryCopies(parts: CopyDependencies) {
  const { records, folder, log, now, env, target } = parts
  const { tickMs = TICK_MS, againMs = AGAIN_MS, retryMs = 500 } = parts
  const closing = new AbortController()
  const { signal } = closing
  const { all, save } = await openCopyList(records)
  /** When each is tried again, in milliseconds of the monotonic clock. */
  const dueAt = new Map<string, number>()

  const others = ({ to }: Pick<RegistryCopy, 'to'>) => all().filter((each) => each.to !== to)
  const change = async (copy: RegistryCopy, news: Pick<RegistryCopy, 'status' | 'reason'>) => {
    const isKnown = all().some(({ to }) => to === copy.to)
    if (isKnown) await save([...others(copy), { ...copy, ...news, at: now().toISOString() }])
  }

  async function store(copy: RegistryCopy): Promise<void> {
    dueAt.set(copy.to, performance.now() + againMs)
    const image = join(folder, copy.name)
    if ((await stat(image).catch(() => null)) === null) {
      await change(copy, { status: 'gone', reason: 'the image was removed from the cache before' })
      return
    }
    const ref = parseOrasRef(copy.to)
    if (!ref.ok) return
    const { name, sha256 } = copy
    const order = { image, ref: ref.value, format: null, sha256, level: 3, name, arch: null }
    const silent = { onStage: () => {}, onProgress: () => {} }
    try {
      const { manifest } = await pushImage({ env }, order, { ...silent, signal, retryMs })
      await change(copy, { status: 'stored', reason: null })
      log.info(`the captured image ${name} is stored as ${copy.to} (${manifest})`)
    } catch (thrown) {
      if (signal.aborted) return
      const reason = renderError(thrown)
      if (reason !== copy.reason) log.warn(`${name} cannot be stored as ${copy.to}: ${reason}`)
      await change(copy, { status: 'waiting', reason })
    }
  }

  async function run() {
    while (!signal.aborted) {
      const due = all().filter(
        ({ status, to }) => status === 'waiting' && performance.now() >= (dueAt.get(to) ?? 0),
      )
      // One after the other: the images that machines read come first.
      if (target() !== '') for (const copy of due) if (!signal.aborted) await store(copy)
      await linger(tickMs, signal)
    }
  }

  const running = run().catch((thrown: unknown) => log.warn(renderError(thrown)))
  return {
    /** Lists all, the newest last. */
    list: all,
    /** Notes that an image is to be stored, before it is accepted; null: no registry is set. */
    async add(name: string, sha256: string): Promise<RegistryCopy | null> {
      const ref = nameCopy(target(), name, sha256)
      if (ref === null) return null
      const [to, at] = [renderOrasRef(ref), now().toISOString()]
      const copy: RegistryCopy = { name, sha256, to, status: 'waiting', reason: null, at }
      // There is nothing to store until it is accepted, however long that takes.
      dueAt.set(to, Infinity)
      await save([...others(copy), copy])
      return copy
    },
    /** The image was accepted: it is stored with the next look. */
    async begin(copy: RegistryCopy) {
      dueAt.delete(copy.to)
      // Somebody who accepted it as well was refused meanwhile, and dropped what was noted.
      if (!all().some(({ to }) => to === copy.to)) await save([...all(), copy])
    },
    /** The image was not accepted. */
    drop: async (copy: RegistryCopy) => await save(others(copy)),
    async [Symbol.asyncDispose]() {
      closing.abort()
      await running
    },
  }
}
