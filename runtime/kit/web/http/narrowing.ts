/** Finds the route that answers a caller with bounds: the same one, made for what they see. */
import type { Bounds } from '../answers/rules/rights.ts'
import type { Route } from '../answers/route.ts'

/** Tables that are kept; one is a few hundred small functions, made in a millisecond. */
const MAX_TABLES = 100

/** `make` makes the routes for bounds; those that are not among them are the same for everybody. */
export function createNarrowing(make: (bounds: Bounds) => readonly Route[]) {
  const tables = new Map<string, ReadonlyMap<string, Route>>()

  function findTable(bounds: Bounds): ReadonlyMap<string, Route> {
    const key = JSON.stringify([bounds.administrates, bounds.reach])
    const known = tables.get(key)
    if (known !== undefined) return known
    if (tables.size >= MAX_TABLES) tables.clear()
    const table = new Map(make(bounds).map((route) => [nameOf(route), route]))
    tables.set(key, table)
    return table
  }

  return (route: Route, bounds: Bounds): Route => findTable(bounds).get(nameOf(route)) ?? route
}

const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string => `${method} ${path}`
