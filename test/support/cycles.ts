/** Finds cycles in a graph: groups of places that all need each other (Tarjan's algorithm). */

/** Each cycle as a sorted list of its members; a place that only needs itself is none. */
export function findCycles(
  arrows: readonly { readonly from: string; readonly to: string }[],
): readonly (readonly string[])[] {
  const next = Map.groupBy(arrows, ({ from }) => from)
  const order = new Map<string, number>()
  const open: string[] = []
  const cycles: string[][] = []

  function visit(place: string): number {
    const number = order.size
    order.set(place, number)
    let low = number
    open.push(place)
    for (const { to } of next.get(place) ?? []) {
      if (!order.has(to)) low = Math.min(low, visit(to))
      else if (open.includes(to)) low = Math.min(low, order.get(to) ?? low)
    }
    if (low === number) {
      const cycle = open.splice(open.indexOf(place))
      if (cycle.length > 1) cycles.push(cycle.toSorted())
    }
    return low
  }

  for (const place of next.keys()) if (!order.has(place)) visit(place)
  return cycles
}
