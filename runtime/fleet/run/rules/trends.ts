/** Trends: how many flashes succeeded and how long they took, by day, by image and by model of disk. */

export interface EndedFlash {
  readonly mac: string
  /** ISO time. */
  readonly began: string
  readonly isDone: boolean
  /** Null: unknown. */
  readonly image: string | null
  readonly model: string | null
  /** Null: unknown. */
  readonly seconds: number | null
}

interface Trend {
  readonly name: string
  readonly done: number
  readonly failed: number
  /** Of the successful ones; null: none. */
  readonly medianSeconds: number | null
}

export interface Trends {
  readonly days: readonly Trend[]
  /** At most `MAX_NAMES`, those with the most flashes. */
  readonly images: readonly Trend[]
  readonly models: readonly Trend[]
}

const MAX_NAMES = 6

/** `dayOf`: the day in the viewer's time zone. */
export function countTrends(
  flashes: readonly EndedFlash[],
  days: readonly string[],
  dayOf: (iso: string) => string,
): Trends {
  const byDay = Map.groupBy(flashes, ({ began }) => dayOf(began))
  return {
    days: days.map((day) => summarize(day, byDay.get(day) ?? [])),
    images: countNames(flashes, ({ image }) => image),
    models: countNames(flashes, ({ model }) => model?.trim() || null),
  }
}

const countNames = (
  flashes: readonly EndedFlash[],
  nameOf: (flash: EndedFlash) => string | null,
): readonly Trend[] =>
  [...Map.groupBy(flashes, nameOf)]
    .flatMap(([name, found]) => (name === null ? [] : [summarize(name, found)]))
    .toSorted((a, b) => b.done + b.failed - (a.done + a.failed) || (a.name < b.name ? -1 : 1))
    .slice(0, MAX_NAMES)

function summarize(name: string, flashes: readonly EndedFlash[]): Trend {
  const done = flashes.filter(({ isDone }) => isDone)
  const seconds = done.flatMap((flash) => (flash.seconds === null ? [] : [flash.seconds]))
  return {
    name,
    done: done.length,
    failed: flashes.length - done.length,
    medianSeconds: medianOf(seconds),
  }
}

function medianOf(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b)
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return low === undefined || high === undefined ? null : (low + high) / 2
}
