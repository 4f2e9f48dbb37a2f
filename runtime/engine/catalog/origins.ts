/** Keeps the addresses at which machines may read images where they come from: looked at, never believed. */
import type { CatalogEntry } from './rules/catalog.ts'
import { decideAgainMs, type OriginAnswer, type OriginImage, originOf } from './origins.rules.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { refuse, type Result } from '#kit/foundation/result.ts'
import type { Environment } from '#kit/host/shell.ts'
import { linger } from '#kit/host/watch.ts'
import { renderHost } from '#kit/net/rules/image-location.ts'
import type { S3Access } from '#kit/net/s3/rules/s3-access.ts'

interface OriginDependencies {
  images(): readonly CatalogEntry[]
  isEnabled(): boolean
  s3(): Promise<S3Access>
  /** Seconds for which a signed address is valid. */
  lifetime(): number
  /** Names proxies, FLASHER_CA_FILE and FLASHER_REGISTRY_HTTP. */
  readonly env: Environment
  readonly now: () => Date
  readonly log: { info(message: string): void; warn(message: string): void }
  readonly tickMs?: number
  readonly retryMs?: number
}

export interface Origins extends AsyncDisposable {
  /** Null: machines cannot read it from its origin. */
  find(image: CatalogEntry): string | null
}

interface FoundOrigin {
  readonly url: string | null
  /** Monotonic milliseconds: when it was found, and when it is looked at again. */
  readonly at: number
  readonly dueAt: number
}

const TICK_MS = 2000
const STALL_MS = 15_000

/** Failures are logged once; images are then read from caches alone. */
export function createOrigins(parts: OriginDependencies): Origins {
  const { env, log, now, tickMs = TICK_MS, retryMs = 500 } = parts
  const closing = new AbortController()
  const { signal } = closing
  const asking = { env, signal, stallMs: STALL_MS, retryMs }
  const found = new Map<string, FoundOrigin>()
  const said = new Map<string, string>()
  const listWanted = createWantedList(parts)
  const readOpener = createOpener(parts, (message) => say('s3', message))

  function say(about: string, message: string) {
    if (said.get(about) !== message) log.warn(message)
    said.set(about, message)
  }

  async function look() {
    const wanted = parts.isEnabled() ? listWanted() : []
    forgetOthers(found, wanted)
    const access = await readOpener(wanted, () => {
      for (const { id, location } of wanted) if (location.kind === 's3') found.delete(id)
    })
    const unreachable = new Set<string>()
    for (const one of wanted.filter(({ id }) => isDue(id))) {
      const host = renderHost(one.image.resolvedSrc ?? one.image.src)
      if (unreachable.has(host) || signal.aborted) continue
      await inspectOrigin(one, access, () => unreachable.add(host))
    }
  }

  const knownOf = (id: string) => found.get(id)?.url ?? null
  const isDue = (id: string) => performance.now() >= (found.get(id)?.dueAt ?? 0)

  async function inspectOrigin(one: OriginImage, access: S3Access | null, onSilence: () => void) {
    const { id, image, location } = one
    let url: string | null = null
    let came: OriginAnswer = 'unknown'
    try {
      const opening = { ...asking, access, now, seconds: parts.lifetime(), known: knownOf(id) }
      const opened = await openOrigin(one, opening)
      came = opened.ok ? 'open' : 'refused'
      if (opened.ok) url = opened.value
      else say(id, renderUnread(image, opened.refusal))
    } catch (thrown) {
      if (signal.aborted) return
      // A network failure concerns all images there.
      if (!(thrown instanceof Fault) || thrown.cause !== undefined) onSilence()
      say(id, renderUnread(image, renderError(thrown)))
    }
    if (url !== null && said.delete(id))
      log.info(`machines read ${image.name} from its origin again`)
    const at = performance.now()
    const againMs = decideAgainMs(location.kind, came, parts.lifetime())
    found.set(id, { url, at, dueAt: at + againMs })
  }

  async function run() {
    while (!signal.aborted) {
      await look()
      await linger(tickMs, signal)
    }
  }

  const running = run().catch((thrown: unknown) => log.warn(renderError(thrown)))
  return {
    find(image) {
      if (found.size === 0) return null
      const wanted = originOf(image)
      const known = wanted === null ? undefined : found.get(wanted.id)
      if (known === undefined || wanted === null) return null
      // No plan gets an address that ends soon, even where no new one can be signed.
      const isOld =
        wanted.location.kind === 's3' && performance.now() - known.at > parts.lifetime() * 750
      return isOld ? null : known.url
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await running
    },
  }
}

const renderUnread = ({ name }: Pick<CatalogEntry, 'name'>, why: string): string =>
  `machines do not read ${name} from its origin: ${why}`

/** `onOthers`: the keys have changed. Null: there are none. */
function createOpener({ s3, lifetime }: OriginDependencies, warn: (message: string) => void) {
  let opener = ''
  return async (wanted: readonly OriginImage[], onOthers: () => void): Promise<S3Access | null> => {
    if (!wanted.some(({ location }) => location.kind === 's3')) return null
    const access = await s3().catch((thrown: unknown) => {
      warn(renderError(thrown))
      return null
    })
    const text = JSON.stringify([access, lifetime()])
    if (text !== opener) onOthers()
    opener = text
    return access
  }
}

function forgetOthers(found: Map<string, FoundOrigin>, wanted: readonly OriginImage[]): void {
  const ids = new Set(wanted.map(({ id }) => id))
  for (const id of found.keys()) if (!ids.has(id)) found.delete(id)
}

interface Opening {
  readonly env: Environment
  readonly signal: AbortSignal
  readonly stallMs: number
  readonly retryMs: number
  /** Null: there are no keys to sign with. */
  readonly access: S3Access | null
  readonly now: () => Date
  readonly seconds: number
  /** Null: none was found before. */
  readonly known: string | null
}

/** Lazy: most servers name no origins. */
async function openOrigin(
  { image, location }: OriginImage,
  { access, known, ...opening }: Opening,
): Promise<Result<string, string>> {
  if (location.kind === 'oras') {
    const { findOpenBlob } = await import('#kit/net/registry/registry.ts')
    return await findOpenBlob(opening, location.ref, { ...image, known })
  }
  if (access === null) return refuse('there are no keys to sign with')
  const { findOpenObject } = await import('#kit/net/s3/s3-client.ts')
  return await findOpenObject({ ...opening, access }, location.source, image)
}

/** Buckets first: signing is quick. */
function createWantedList({ images }: Pick<OriginDependencies, 'images'>) {
  let of: readonly CatalogEntry[] | null = null
  let wanted: readonly OriginImage[] = []
  return () => {
    const present = images()
    if (present === of) return wanted
    of = present
    const all = present.flatMap((image) => originOf(image) ?? [])
    wanted = [
      ...all.filter(({ location }) => location.kind === 's3'),
      ...all.filter(({ location }) => location.kind === 'oras'),
    ]
    return wanted
  }
}
