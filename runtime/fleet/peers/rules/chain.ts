/** Which machine of a site reads an image from which other one (docs/decisions/0134-a-chain-of-machines.md). */
import type { Mac } from '../../../kit/net/rules/mac.ts'

/** One machine that reads an image, since it asked for its neighbours the first time. */
export interface Neighbour {
  /** Each arrival has one of its own, so that nobody ever stands behind somebody who came later. */
  readonly arrival: number
  readonly mac: Mac
  /** The machine makes it for this one flash. */
  readonly visit: string
  /** Where the others reach it. */
  readonly ip: string
  /** The arrival that it stands behind; null: it reads from the cache. */
  readonly behind: number | null
  /** Bytes of the image that it has read. */
  readonly readBytes: number
  /** How many of the last of them it keeps for others. */
  readonly windowBytes: number
  /** Whether it hands on at all. */
  readonly serves: boolean
  /** Milliseconds of a steady clock. */
  readonly heardAt: number
}

/** What a machine says of itself, and how it is known. */
export type Arriving = Omit<Neighbour, 'arrival' | 'behind' | 'heardAt'>

/** How often a machine asks again, in seconds: what changed before it is known to it then. */
export const ASK_SECONDS = 5

/** Who was silent for longer is gone: restarted, switched off, or cut off. */
export const SILENT_MS = 17_000

/**
 * The most machines between a machine and the cache. Each hands a piece on when it has all of it and
 * looks every half second whether it came, so the last one waits some five seconds for its first
 * byte; a client gives a source up that brings none in eight.
 */
export const MAX_HOPS = 10

/** How many machines before it a machine learns of, for when the nearest one leaves. */
const MAX_BEFORE = 3

/**
 * Returns the arrival behind which a newcomer stands: the newest one that still keeps what it needs
 * next and has nobody behind it; null where there is none, so that it begins a chain of its own at the
 * cache. So does a machine that was in the chain before, or has the address of one that is: others still
 * read from there, and it must not read from them.
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

/**
 * Lists the machines that one reads from, the nearest first, and how many of them stand between it and
 * the cache. Who has gone is passed over, and so whoever stood behind them moves up.
 */
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

/** Counts the machines between the cache and one that would stand behind `last`. */
const countHops = (chain: readonly Neighbour[], last: Neighbour, now: number): number =>
  listBefore(chain, last, now).hops + 1

/** The nearest one before a machine that is there and hands on; null: the cache. */
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

/** Says whether a machine was heard lately. `now`: milliseconds of the same clock. */
export const isHere = ({ heardAt }: Pick<Neighbour, 'heardAt'>, now: number): boolean =>
  now - heardAt <= SILENT_MS
