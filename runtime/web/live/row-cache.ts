/** Caches rows of the machines table, rendered once per change of a machine. */
import { renderData } from '../../core/net/event-stream.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import type { Run } from '../../core/machine/run.ts'

/** Rows of deleted machines that may stay. */
const SPARE = 100

interface Entry<M> {
  readonly machine: M
  readonly run: Run | null
  readonly lines: string
}

export function createRowCache<M extends MachineBase>(
  renderRow: (machine: M) => string,
  /** What a row says beside its machine: how far it is being flashed. */
  findRun: (mac: string) => Run | null,
) {
  const entries = new Map<string, Entry<M>>()

  function linesOf(machine: M): string {
    const known = entries.get(machine.mac)
    const run = findRun(machine.mac)
    const isKnown = known !== undefined && known.run === run && isSame(known.machine, machine)
    if (isKnown) return known.lines
    const lines = renderData(renderRow(machine))
    entries.set(machine.mac, { machine, run, lines })
    return lines
  }
  return {
    /** The `data:` lines of these rows. */
    render: (machines: readonly M[]) =>
      machines.length === 0 ? 'data: ' : machines.map(linesOf).join('\n'),
    /** Drops everything once it holds much more than there are machines. */
    trim(machines: number): void {
      if (entries.size > 2 * machines + SPARE) entries.clear()
    },
    clear: () => entries.clear(),
  }
}

const isSame = (a: MachineBase, b: MachineBase) =>
  a === b || (a.updated_at === b.updated_at && a.last_seen_at === b.last_seen_at)
