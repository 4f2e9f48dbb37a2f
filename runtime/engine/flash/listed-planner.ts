/** Plans flashes from the first of several sources that has the image, and reads on at the next where one fails (docs/decisions/0077-sources-in-their-order.md). */
import { readFrameMap } from '#engine/image/zstd-decoder.ts'
import type { SourceShare } from '#engine/image/rules/frame-map.ts'
import type { ListedSource, OpenOptions, Source } from '#engine/image/sources/source.ts'
import type { Sources } from '#engine/image/sources/sources.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { linger } from '#kit/host/watch.ts'
import { renderHost, renderSafeUrl } from '#kit/net/rules/image-location.ts'
import { decideDelay, TRIES_WITHOUT_PROGRESS } from '#kit/net/rules/network-failure.ts'
import {
  type FlashFindings,
  type FlashOrder,
  type FlashRefusal,
  listSources,
  renderRefusal,
} from './rules/flash-plan.ts'

interface PlanOfSource extends AsyncDisposable {
  readonly disks: readonly Pick<FlashFindings, 'imageProblem' | 'refusals'>[]
}

/**
 * Calls `plan` with one source after the other. What the last one is refused for is returned, or
 * rejected with, as it is for an image in one place; nothing is written.
 */
export async function planFromSources<Plan extends PlanOfSource>(
  sources: Pick<Sources, 'open' | 'retryMs'>,
  order: FlashOrder,
  signal: AbortSignal,
  plan: (source: Source) => Promise<Plan>,
): Promise<Plan> {
  const { sha256, indexSha256 = null } = order.options
  await using undo = new AsyncDisposableStack()
  const locations = listSources(order)
  const list = undo.use(
    createSourceList({ sources, locations, sha256, signal, renew: order.renewSource }),
  )
  for (;;) {
    const source = await list.next()
    try {
      if (list.hasMore()) await checkIndex(source, indexSha256)
      const planned = await plan(source)
      const doubt = list.hasMore() ? findDoubt(planned) : null
      if (doubt === null) {
        const held = undo.move()
        return { ...planned, [Symbol.asyncDispose]: () => held.disposeAsync() }
      }
      list.refuse(doubt)
    } catch (thrown) {
      if (signal.aborted || !list.hasMore()) throw thrown
      list.refuse(thrown)
    }
  }
}

/** Rejects with a Fault where the source has another index, or cannot be read at its frames. */
async function checkIndex({ readAt, ...source }: Source, wanted: string | null): Promise<void> {
  if (wanted === null) return
  const map = readAt === null ? null : await readFrameMap({ ...source, readAt })
  if (map?.indexSha256 === wanted) return
  throw new Fault('digest-mismatch', `${source.name} does not have the expected index`)
}

/** What another source might be without; null: nothing is wrong with the image. */
function findDoubt({ disks }: PlanOfSource): string | null {
  for (const { imageProblem, refusals } of disks) {
    const refusal = refusals.find(({ why }) => CONTENT.has(why))
    if (imageProblem !== null) return imageProblem
    if (refusal !== undefined) return renderRefusal(refusal)
  }
  return null
}

const CONTENT: ReadonlySet<FlashRefusal['why']> = new Set([
  'unknown-format',
  'image-empty',
  'image-too-big',
  'cannot-grow',
  'no-first-boot',
  'no-seed',
  'other-sectors',
])

interface SourceListOptions {
  readonly sources: Pick<Sources, 'open' | 'retryMs'>
  /** In the order of asking; the last one is the most patient. */
  readonly locations: readonly string[]
  /** Of the stored bytes; null: unknown. */
  readonly sha256: string | null
  readonly signal: AbortSignal
  readonly renew?: OpenOptions['renew']
}

interface Account {
  readonly location: string
  readonly name: string
  bytes: number
  trouble: string | null
  /** It sent something else: its bytes count only where each frame is checked. */
  isDoubted: boolean
}

interface AccountedSource extends ListedSource {
  readonly account: Account
  source(): Promise<Source>
}

/**
 * Opens a location when it is asked for, and gives up soon while there is another; where all have
 * failed, each is asked once more, patiently.
 */
export function createSourceList({ sources, locations, sha256, signal, renew }: SourceListOptions) {
  const opened = new AsyncDisposableStack()
  const accounts = locations.map((location): Account => {
    const name = renderHost(location)
    return { location, name, bytes: 0, trouble: null, isDoubted: false }
  })
  const agreed: Agreed = { sizeBytes: null, sha256 }
  const open = async (location: string, isHasty: boolean) =>
    opened.use(await sources.open(location, { signal, isHasty, renew }))
  const first = accounts.map((account, at) =>
    createListed(account, agreed, () => open(account.location, at < accounts.length - 1)),
  )
  const again = accounts.map((account) =>
    createListed(account, agreed, () => insist(() => open(account.location, false))),
  )
  const places = [...first, ...again]
  let at = -1

  /** Retries as often as after a broken connection, as it was there before. */
  async function insist(act: () => Promise<Source>): Promise<Source> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await act()
      } catch (thrown) {
        if (signal.aborted || tries > TRIES_WITHOUT_PROGRESS) throw thrown
        await linger(decideDelay(tries, sources.retryMs, Math.random()), signal)
      }
    }
  }

  const hasMore = () => at < first.length - 1
  const shares = () => accounts.map(({ name, bytes, trouble }) => ({ name, bytes, trouble }))

  /** Rejects with the last one's Fault. */
  async function next(): Promise<Source> {
    agreed.sizeBytes = null
    for (;;) {
      at += 1
      const place = first[at]
      if (place === undefined) throw new Error('no location is left')
      try {
        return describe(await place.source(), at)
      } catch (thrown) {
        if (signal.aborted || !hasMore()) throw withTroubles(thrown, shares().slice(0, at))
        place.refused(thrown)
      }
    }
  }

  function describe(source: Source, from: number): Source {
    agreed.sizeBytes = source.sizeBytes
    return {
      ...source,
      places: places.slice(from),
      shares,
      alone: listAlone(first, again, from).map((place) => () => openAlone(place, shares)),
      joined: (start) => joinSources(places.slice(from), signal, start),
      [Symbol.asyncDispose]: async () => {},
    }
  }

  return {
    next,
    hasMore,
    refuse(why: unknown) {
      const place = first[at]
      if (place !== undefined) place.account.isDoubted = true
      place?.refused(why)
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** From `from` on; the last location is opened patiently at once. */
const listAlone = (
  first: readonly AccountedSource[],
  again: readonly AccountedSource[],
  from: number,
): readonly AccountedSource[] =>
  again
    .map((place, at) => (at === first.length - 1 ? (first[at] ?? place) : place))
    .slice(from)
    .filter((place, index) => index === 0 || !place.account.isDoubted)

/** Notes the failure, so that its share says why another one was asked. */
async function openAlone(
  place: AccountedSource,
  shares: () => readonly SourceShare[],
): Promise<Source> {
  try {
    const { joined: _joined, ...source } = await place.source()
    return { ...source, places: [place], shares, [Symbol.asyncDispose]: async () => {} }
  } catch (thrown) {
    place.refused(thrown)
    throw thrown
  }
}

interface Agreed {
  sizeBytes: number | null
  readonly sha256: string | null
}

function createListed(
  account: Account,
  agreed: Agreed,
  open: () => Promise<Source>,
): AccountedSource {
  let opening: Promise<Source> | null = null
  async function openChecked() {
    const found = await open()
    const reason = findOther(found, agreed)
    if (reason !== null) throw new Fault('digest-mismatch', `${found.name} ${reason}`)
    return found
  }
  function source(): Promise<Source> {
    opening ??= openChecked().catch((thrown: unknown) => {
      opening = null
      throw thrown
    })
    return opening
  }
  return {
    account,
    name: renderSafeUrl(account.location),
    get sizeBytes() {
      return agreed.sizeBytes
    },
    source,
    async readAt(into, offset) {
      const { name, readAt } = await source()
      if (readAt === null)
        throw new Fault('source-broken', `${name}: the server has no byte ranges`)
      return await readAt(into, offset)
    },
    taken(bytes) {
      account.bytes += bytes
    },
    refused(why) {
      account.trouble ??= renderTrouble(why)
    },
  }
}

/** Null: no difference is known. */
function findOther(
  { sizeBytes, sha256, servedSha256 }: Source,
  { sizeBytes: expected, sha256: wanted }: Agreed,
): string | null {
  const found = sha256 ?? servedSha256 ?? null
  if (wanted !== null && found !== null && found !== wanted) return 'has another version'
  return expected === null || sizeBytes === expected
    ? null
    : `has ${sizeBytes} bytes, not ${expected}`
}

/** Goes on at the byte at which the place before it broke. */
async function* joinSources(
  places: readonly AccountedSource[],
  signal: AbortSignal,
  from = 0,
): AsyncGenerator<Buffer, void, undefined> {
  let at = from
  const left = places.filter((place, index) => index === 0 || !place.account.isDoubted)
  for (const [index, place] of left.entries()) {
    try {
      const source = await place.source()
      for await (const chunk of source.stream(at)) {
        at += chunk.length
        place.taken(chunk.length)
        yield chunk
      }
      return
    } catch (thrown) {
      place.refused(thrown)
      if (signal.aborted || index === left.length - 1) throw thrown
    }
  }
}

const MAX_TROUBLE = 200

/** Without the address, which the share's name says. */
const renderTrouble = (thrown: unknown): string =>
  renderError(thrown)
    .replaceAll(/\S+:\/\/\S+?:?(?=\s|$)/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_TROUBLE)

/** The last one's reason, then those before. */
function withTroubles(thrown: unknown, before: readonly SourceShare[]): unknown {
  const failures = before.flatMap(({ name, trouble }) =>
    trouble === null ? [] : [`${name}: ${trouble}`],
  )
  if (!(thrown instanceof Fault) || failures.length === 0) return thrown
  const { code, message, hint, cause } = thrown
  return new Fault(code, `${message}; earlier failures: ${failures.join('; ')}`, { hint, cause })
}
