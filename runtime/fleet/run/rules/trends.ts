/** Trends: how many flashes succeeded and how long they took, by day, by image and by model of disk. */

/** A flash that has ended, as far as trends need it. */
export interface EndedFlash {
  readonly mac: string
  /** ISO time of its beginning. */
  readonly began: string
  readonly isDone: boolean
  /** Null: not known. */
  readonly image: string | null
  readonly model: string | null
  /** The time from its beginning to its end; null: not known. */
  readonly seconds: number | null
}

interface Trend {
  /** A day (`2026-11-27`), an image or a model. */
  readonly name: string
  readonly done: number
  /** Those that ended in another way. */
  readonly failed: number
  /** The median of those that succeeded; null: none did. */
  readonly medianSeconds: number | null
}

export interface Trends {
  /** One for each of the days that were asked for, in their order. */
  readonly days: readonly Trend[]
  /** Those with the most flashes, at most `MAX_NAMES`. */
  readonly images: readonly Trend[]
  readonly models: readonly Trend[]
}

/** What a card has room for. */
const MAX_NAMES = 6

/** Counts flashes; `dayOf` names the day of a time in the zone of who looks. */
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
