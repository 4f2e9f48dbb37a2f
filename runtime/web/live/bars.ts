/** How far the runs are, on their way to the pages that show them: each bar is rendered once a change. */
import { renderData } from '../../core/net/event-stream.ts'
import type { Run } from '../../core/machine/run.ts'

/** A bar moves on the page within a second of the post. */
export const BARS_MS = 400

interface Bars {
  /** The `data:` lines of these machines' bars; null: of all. Empty: none of them is flashed now. */
  render(macs: ReadonlySet<string> | null): string
}

/** What it costs grows with what runs, never with the fleet. */
export function createBars(listLive: () => readonly Run[], renderBar: (run: Run) => string): Bars {
  const rendered = new WeakMap<Run, string>()

  function linesOf(run: Run): string {
    const known = rendered.get(run)
    if (known !== undefined) return known
    const lines = renderData(renderBar(run))
    rendered.set(run, lines)
    return lines
  }

  return {
    render: (macs) =>
      listLive()
        .filter(({ mac }) => macs === null || macs.has(mac))
        .map(linesOf)
        .join('\n'),
  }
}
