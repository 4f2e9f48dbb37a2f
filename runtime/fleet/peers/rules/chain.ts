/** Which machine of a site reads an image from which other one (docs/decisions/0134-a-chain-of-machines.md). */
import type { Mac } from '#kit/net/rules/mac.ts'
import { renderCacheBase } from '#engine/catalog/rules/cache-entry.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { isAt, type NearMachine } from '#engine/catalog/rules/near-caches.ts'

/** One machine that reads an image, since its first question. */
export interface Neighbour {
  /** Unique, so that nobody stands behind somebody who came later. */
  readonly arrival: number
  readonly mac: Mac
  /** Made by the machine for this one flash. */
  readonly visit: string
  readonly ip: string
  /** The arrival it stands behind; null: it reads from the cache. */
  readonly behind: number | null
  /** Bytes of the image that it has read. */
  readonly readBytes: number
  /** How many of the last of them it keeps for others. */
  readonly windowBytes: number
  readonly serves: boolean
  /** Milliseconds of a steady clock. */
  readonly heardAt: number
}

export type Arriving = Omit<Neighbour, 'arrival' | 'behind' | 'heardAt'>

/** Seconds between a machine's questions; it learns of changes then. */
export const ASK_SECONDS = 5

/** Silent for longer: restarted, switched off, or cut off. */
export const SILENT_MS = 17_000

/**
 * Limits the wait for the first byte: each machine hands on whole pieces and looks every 0.5 s, so
 * the last waits some 5 s. A client drops a source that brings no byte in 8 s.
 */
export const MAX_HOPS = 10

/** How many machines before it a machine learns of, for when the nearest one leaves. */
const MAX_BEFORE = 3

/**
 * The newest machine that still keeps what the newcomer needs and has nobody behind it; null: the
 * cache. Null also for a machine that was in the chain, or has such an address: others still read
 * from there, and it must not read from them.
 */
export function decidePosition(
  chain: readonly Neighbour[],
  { mac, ip, readBytes }: Pick<Arriving, 'mac' | 'ip' | 'readBytes'>,
  now: number,
): number | null {
  const living = chain.filter((each) => isHere(each, now))
  const isKnown = chain.some((each) => each.mac === mac) || living.some((each) => each.ip === ip)
  if (isKnown) return null
  const followed = new Set(living.map((each) => findLiving(chain, each, now)?.arrival))
  const keeps = (each: Neighbour) =>
    each.readBytes >= readBytes && each.readBytes - each.windowBytes <= readBytes
  const found = living.findLast((each) => each.serves && keeps(each) && !followed.has(each.arrival))
  return found === undefined || countHops(chain, found, now) > MAX_HOPS ? null : found.arrival
}

/** Nearest first, without machines that left. `hops`: all machines between it and the cache. */
export function listBefore(
  chain: readonly Neighbour[],
  from: Neighbour,
  now: number,
): { readonly before: readonly Neighbour[]; readonly hops: number } {
  const before: Neighbour[] = []
  let at = findLiving(chain, from, now)
  for (; at !== null; at = findLiving(chain, at, now)) before.push(at)
  return { before: before.slice(0, MAX_BEFORE), hops: before.length }
}

const countHops = (chain: readonly Neighbour[], last: Neighbour, now: number): number =>
  listBefore(chain, last, now).hops + 1

/** Null: the cache. */
function findLiving(
  chain: readonly Neighbour[],
  { behind }: Neighbour,
  now: number,
): Neighbour | null {
  for (let at = behind; at !== null;) {
    const wanted = at
    const found = chain.find(({ arrival }) => arrival === wanted)
    if (found === undefined) return null
    if (isHere(found, now) && found.serves) return found
    at = found.behind
  }
  return null
}

/** `now`: milliseconds of the same clock. */
export const isHere = ({ heardAt }: Pick<Neighbour, 'heardAt'>, now: number): boolean =>
  now - heardAt <= SILENT_MS

/** Whether a machine may read an image from the others of its site, and which site that is. */
type NearImage = Pick<CatalogEntry, 'url' | 'sha256' | 'indexSha256'>

interface PeerSite {
  /** `[peers]`; absent: no handing on. */
  readonly peers?: { readonly enabled: boolean; readonly sites: readonly string[] } | undefined
  readonly cacheUrl: string | null
}

interface Neighbourhood {
  readonly site: string
  readonly sha256: string
}

/** Null: there are none, or the image is not handed on. */
export function findNeighbourhood(
  image: NearImage,
  machine: NearMachine,
  { peers, cacheUrl }: PeerSite,
): Neighbourhood | null {
  const { sha256 } = image
  if (peers?.enabled !== true || sha256 === null || !isHandedOn(image, cacheUrl)) return null
  const site = findSite(machine, peers.sites)
  return site === null ? null : { site, sha256 }
}

/** Plain HTTP from the cache with a frame index: its digest, in the plan, shows wrong bytes. */
const isHandedOn = ({ url, indexSha256 }: NearImage, cacheUrl: string | null): boolean =>
  cacheUrl !== null &&
  cacheUrl.startsWith('http:') &&
  url.startsWith(`${renderCacheBase(cacheUrl)}/`) &&
  Boolean(indexSha256)

/** The first configured site that has the machine; if none is set, its /24. */
function findSite(machine: NearMachine, sites: readonly string[]): string | null {
  if (sites.length > 0) return sites.find((site) => isAt(machine, site)) ?? null
  const [, network] = /^((?:\d{1,3}\.){3})\d{1,3}$/.exec(machine.ip ?? '') ?? []
  return network === undefined ? null : `${network}0/24`
}
