/** Remembers which machines hand which image on to each other; in memory, since each machine soon asks a new leader. */
import { decidePosition, isHere, listBefore, type Arriving, type Neighbour } from './rules/chain.ts'

/** A machine that began again is not heard at its former place in the chain. */
const LONG_AGO = -Infinity

/** A longer chain is begun anew: its machines ask again within seconds. */
const MAX_NEIGHBOURS = 2000

/** `elapsed`: milliseconds of a steady clock. */
export function createPeerChains(elapsed: () => number) {
  const chains = new Map<string, readonly Neighbour[]>()
  let arrivals = 0

  function prune(now: number) {
    for (const [name, chain] of chains) {
      if (!chain.some((each) => isHere(each, now))) chains.delete(name)
    }
  }

  return {
    /** Returns the machines before it, and how many of them stand between it and the cache. */
    hear(name: string, said: Arriving) {
      const now = elapsed()
      const known = chains.get(name) ?? []
      if (known.length === 0) prune(now)
      const chain = known.length >= MAX_NEIGHBOURS ? [] : known
      const before = chain.find(({ mac, visit }) => mac === said.mac && visit === said.visit)
      const heard: Neighbour = {
        ...said,
        heardAt: now,
        arrival: before?.arrival ?? (arrivals += 1),
        behind: before === undefined ? decidePosition(chain, said, now) : before.behind,
      }
      const others = chain
        .filter(({ arrival }) => arrival !== heard.arrival)
        .map((each) => (each.mac === said.mac ? { ...each, heardAt: LONG_AGO } : each))
      const next = [...others, heard].toSorted((a, b) => a.arrival - b.arrival)
      chains.set(name, next)
      return listBefore(next, heard, now)
    },
  }
}
