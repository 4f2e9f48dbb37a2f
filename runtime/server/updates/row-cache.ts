/** Caches rows of the machines table, rendered once per change of a machine. */
import { renderData } from '#kit/net/rules/event-stream.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { Run } from '#engine/inventory/rules/run.ts'

/** Rows of deleted machines that may stay. */
const SPARE = 100

interface CachedRow {
  readonly machine: MachineBase
  readonly run: Run | null
  readonly isLate: boolean
  readonly lines: string
}

interface RowSources {
  findRun(mac: string): Run | null
  /** Whether time alone has changed the row. */
  isLate(machine: MachineBase): boolean
}

/** Of columns; people have a few. */
const MAX_CHOICES = 8

export function createRowCaches(
  renderRow: (machine: MachineBase, columns: string) => string,
  beside: RowSources,
) {
  const caches = new Map<string, ReturnType<typeof createRowCache>>()
  return {
    of(columns: string) {
      const known = caches.get(columns)
      if (known !== undefined) return known
      if (caches.size >= MAX_CHOICES) caches.clear()
      const cache = createRowCache((machine: MachineBase) => renderRow(machine, columns), beside)
      caches.set(columns, cache)
      return cache
    },
    /** Empties a cache that holds much more than there are machines. */
    trim(machines: number): void {
      for (const cache of caches.values()) cache.trim(machines)
    },
    clear: () => caches.clear(),
  }
}

function createRowCache(
  renderRow: (machine: MachineBase) => string,
  { findRun, isLate }: RowSources,
) {
  const entries = new Map<string, CachedRow>()

  function linesOf(machine: MachineBase): string {
    const known = entries.get(machine.mac)
    const run = findRun(machine.mac)
    const late = isLate(machine)
    const isKnown =
      known !== undefined &&
      known.run === run &&
      known.isLate === late &&
      isSame(known.machine, machine)
    if (isKnown) return known.lines
    const lines = renderData(renderRow(machine))
    entries.set(machine.mac, { machine, run, isLate: late, lines })
    return lines
  }
  return {
    /** The `data:` lines of these rows. */
    render: (machines: readonly MachineBase[]) =>
      machines.length === 0 ? 'data: ' : machines.map(linesOf).join('\n'),
    trim(machines: number): void {
      if (entries.size > 2 * machines + SPARE) entries.clear()
    },
  }
}

const isSame = (a: MachineBase, b: MachineBase) =>
  a === b || (a.updated_at === b.updated_at && a.last_seen_at === b.last_seen_at)
