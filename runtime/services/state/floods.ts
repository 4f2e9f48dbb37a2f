/** Counts events that arrive too fast, and records their number at the end of each window. */
import { FLOOD_WINDOW_MS, isOver, nextWindow, type FloodWindow } from '../../core/state/flood.ts'

export interface Counted<Note> {
  /** The last of them. */
  readonly note: Note
  readonly count: number
}

/** Subjects counted each for itself; past them, all further ones of a kind count as one. */
const MAX_KEYS = 4096

/** `onCounted` is called soon after a window in which something was counted. */
export function createFloods<Note>(
  now: () => number,
  onCounted: (counted: readonly Counted<Note>[]) => void,
) {
  const windows = new Map<string, { window: FloodWindow; note: Note }>()
  let timer: NodeJS.Timeout | null = null

  function take(which: (window: FloodWindow) => boolean): readonly Counted<Note>[] {
    const ended = [...windows].filter(([, { window }]) => which(window))
    for (const [key] of ended) windows.delete(key)
    return ended.flatMap(([, { window, note }]) =>
      window.counted === 0 ? [] : [{ note, count: window.counted }],
    )
  }

  function sweep() {
    timer = null
    const at = now()
    const counted = take((window) => isOver(window, at))
    if (counted.length > 0) onCounted(counted)
    arm()
  }
  function arm() {
    if (windows.size > 0) timer ??= setTimeout(sweep, FLOOD_WINDOW_MS).unref()
  }

  return {
    /** Whether to record it; when not, it was counted. */
    admit(kind: string, subject: string, note: Note): boolean {
      const own = `${kind} ${subject}`
      const key = windows.has(own) || windows.size < MAX_KEYS ? own : `${kind} *`
      const before = windows.get(key)
      const at = now()
      if (before !== undefined && before.window.counted > 0 && isOver(before.window, at)) {
        windows.delete(key)
        onCounted([{ note: before.note, count: before.window.counted }])
      }
      const { note: admitted, window } = nextWindow(before?.window ?? null, at)
      windows.set(key, { window, note })
      arm()
      return admitted
    },
    /** Ends all windows now and returns what was counted. */
    drain(): readonly Counted<Note>[] {
      if (timer !== null) clearTimeout(timer)
      timer = null
      return take(() => true)
    },
  }
}
