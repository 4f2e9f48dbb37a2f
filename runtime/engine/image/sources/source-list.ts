/** Several places of one image, asked in their order: the next one where one fails (docs/decisions/0077-sources-in-their-order.md). */
import { Fault, renderError } from '../../../kit/foundation/fault.ts'
import { linger } from '../../../kit/host/watch.ts'
import { decideDelay, TRIES_WITHOUT_PROGRESS } from '../../../kit/net/rules/retry.ts'
import { renderHost, renderSafeUrl } from '../../../kit/net/rules/image-location.ts'
import type { SourceShare } from '../rules/source-share.ts'
import type { ListedSource, OpenOptions, Source } from './source.ts'
import type { Sources } from './sources.ts'

interface SourceListOptions {
  readonly sources: Pick<Sources, 'open' | 'retryMs'>
  /** Where the image is, in the order in which it is asked for; the last one is the most patient. */
  readonly locations: readonly string[]
  /** The digest of the stored bytes; null: not known. */
  readonly sha256: string | null
  readonly signal: AbortSignal
  readonly renew?: OpenOptions['renew']
}

/** What one location gave, whichever of its connections brought it. */
interface Account {
  readonly location: string
  readonly name: string
  bytes: number
  trouble: string | null
  /** It sent something else: its bytes are used only where each frame of them is checked. */
  isDoubted: boolean
}

interface AccountedSource extends ListedSource {
  readonly account: Account
  source(): Promise<Source>
}

/**
 * Each location is opened when it is asked for, and is given up soon while there is another one;
 * where all have failed, each is asked once more, patiently.
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

  /** It was there before: it is asked for again, as often as after a broken connection. */
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
    /** Whether another location is left that was not looked at. */
    hasMore,
    /** Notes why the location that `next` opened last is not taken. */
    refuse(why: unknown) {
      const place = first[at]
      if (place !== undefined) place.account.isDoubted = true
      place?.refused(why)
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** The patient ones from `from` on: the last location is opened patiently at once. */
const listAlone = (
  first: readonly AccountedSource[],
  again: readonly AccountedSource[],
  from: number,
): readonly AccountedSource[] =>
  again
    .map((place, at) => (at === first.length - 1 ? (first[at] ?? place) : place))
    .slice(from)
    .filter((place, index) => index === 0 || !place.account.isDoubted)

/** What it fails for is noted, so that its share says why another one was asked. */
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

/** What all places must have in common; null: not known. */
interface Agreed {
  sizeBytes: number | null
  readonly sha256: string | null
}

/** `open` is called when something is read, and again where it failed. */
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
      if (readAt === null) throw new Fault('source-broken', `${name}: the server sends no parts`)
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

/** Says why a source has other bytes than the others; null: nothing says so. */
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

/** In a line, without the address, which its own name says. */
const renderTrouble = (thrown: unknown): string =>
  renderError(thrown)
    .replaceAll(/\S+:\/\/\S+?:?(?=\s|$)/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_TROUBLE)

/** The message has the last one's reason, and after it what was wrong with those before. */
function withTroubles(thrown: unknown, before: readonly SourceShare[]): unknown {
  const told = before.flatMap(({ name, trouble }) =>
    trouble === null ? [] : [`${name}: ${trouble}`],
  )
  if (!(thrown instanceof Fault) || told.length === 0) return thrown
  const { code, message, hint, cause } = thrown
  return new Fault(code, `${message}; before it ${told.join('; ')}`, { hint, cause })
}
