/** Counts events that arrive too fast, and records their number at the end of each window. */
import { FLOOD_WINDOW_MS, isOver, nextWindow, type FloodWindow } from './rules/flood.ts'

export interface CountedEvent<Note> {
  readonly note: Note
  readonly count: number
}

/** Beyond it, further subjects of a kind count as one. */
const MAX_KEYS = 4096

export function createFloods<Note>(
  now: () => number,
  onCounted: (counted: readonly CountedEvent<Note>[]) => void,
) {
  /** By kind, then subject: a joint key would be made and hashed for each event. */
  const kinds = new Map<string, Map<string, { window: FloodWindow; note: Note }>>()
  let size = 0
  let timer: NodeJS.Timeout | null = null

  function take(which: (window: FloodWindow) => boolean): readonly CountedEvent<Note>[] {
    const counted: CountedEvent<Note>[] = []
    for (const subjects of kinds.values()) {
      for (const [subject, { window, note }] of subjects) {
        if (!which(window)) continue
        subjects.delete(subject)
        size -= 1
        if (window.counted > 0) counted.push({ note, count: window.counted })
      }
    }
    return counted
  }

  function sweep() {
    timer = null
    const at = now()
    const counted = take((window) => isOver(window, at))
    if (counted.length > 0) onCounted(counted)
    arm()
  }
  function arm() {
    if (size > 0) timer ??= setTimeout(sweep, FLOOD_WINDOW_MS).unref()
  }

  return {
    /** False: it was counted instead. */
    admit(kind: string, subject: string, note: Note): boolean {
      const subjects = kinds.getOrInsertComputed(kind, () => new Map())
      const key = subjects.has(subject) || size < MAX_KEYS ? subject : '*'
      const before = subjects.get(key)
      const at = now()
      if (before === undefined) size += 1
      else if (before.window.counted > 0 && isOver(before.window, at)) {
        onCounted([{ note: before.note, count: before.window.counted }])
      }
      const { note: admitted, window } = nextWindow(before?.window ?? null, at)
      subjects.set(key, { window, note })
      arm()
      return admitted
    },
    drain(): readonly CountedEvent<Note>[] {
      if (timer !== null) clearTimeout(timer)
      timer = null
      return take(() => true)
    },
  }
}
