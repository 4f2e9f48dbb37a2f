/** The events of a build, the lines that report them, and an estimate of the time left. */
import { parseJson } from '#kit/foundation/json-reader.ts'

export type BuildEvent =
  | {
      readonly event: 'started'
      readonly step: string
      readonly says: string
      readonly log: string
    }
  | {
      readonly event: 'cached'
      readonly step: string
      readonly says: string
      /** The bytes of all files that the step made. */
      readonly bytes: number
    }
  | {
      readonly event: 'made'
      readonly step: string
      readonly says: string
      readonly seconds: number
      readonly bytes: number
    }
  | {
      readonly event: 'failed'
      readonly step: string
      readonly why: string
      readonly log: string
      /** The last lines of the log. */
      readonly tail: readonly string[]
    }

/** Why a step failed that was interrupted: it has no log worth reading. */
export const INTERRUPTED = 'was interrupted'

/** Seconds that each step took when it last ran here, by its name. */
export type Durations = Readonly<Record<string, number>>

/** The estimate for a step that never ran here. */
const UNKNOWN_SECONDS = 20

/** Estimates the seconds for `names`, all of which are still to run. */
export const expectSeconds = (names: readonly string[], durations: Durations): number =>
  names.reduce((sum, name) => sum + (durations[name] ?? UNKNOWN_SECONDS), 0)

/**
 * Parses a table of seconds. Anything but a table of numbers counts as an empty one: only an
 * estimate is lost.
 */
export function parseDurations(text: string): Durations {
  const value = parseJson(text)
  const rows = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return Object.fromEntries(
    rows.filter((row): row is [string, number] => typeof row[1] === 'number'),
  )
}

/** Renders `1 min 05 s`, `40 s`; a decimal below ten: `3.2 s`. */
export function renderSeconds(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  if (whole < 60) return `${seconds > 0 && seconds < 9.95 ? seconds.toFixed(1) : whole} s`
  return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`
}

/** `1:05`: a time that changes while it is read. */
const renderClock = (seconds: number): string => {
  const whole = Math.max(0, Math.floor(seconds))
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

/** Renders bytes in units of 1000, as release pages count: `189.8 MB`. */
export function renderBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  const value = bytes / 1000 ** power
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`
}

/** How wide a build's steps and their texts are, with the space behind them. */
interface Columns {
  readonly name: number
  readonly text: number
}

// At least so wide, with two columns for a mark before them: 79 in all.
const NAME_COLUMNS = 15
const TEXT_COLUMNS = 41
const TIME_COLUMNS = 11
const SIZE_COLUMNS = 10

/** Chooses columns that are wide enough for every step of a build. */
export const chooseColumns = (
  steps: readonly { readonly name: string; readonly says: string }[],
): Columns => ({
  name: Math.max(NAME_COLUMNS, ...steps.map(({ name }) => name.length + 1)),
  text: Math.max(TEXT_COLUMNS, ...steps.map(({ says }) => says.length + 1)),
})

const renderStepHead = (step: string, text: string, columns: Columns): string =>
  `${step.padEnd(columns.name)}${text}`

/** How far a build is, while one of its steps is running. */
interface Position {
  /** The time that the running step has taken, in seconds. */
  readonly spent: number
  /** For all that remains, in seconds. */
  readonly left: number
  /** The running step's number, from 1, and how many there are. */
  readonly at: number
  readonly of: number
}

/** The line of a running step, for a terminal: times stand below those of other steps. */
export function renderRunning(
  { step, says }: { readonly step: string; readonly says: string },
  { spent, left, at, of }: Position,
  columns: Columns,
) {
  const times = [
    renderClock(spent).padStart(TIME_COLUMNS - 1),
    `${renderClock(left)} left`.padStart(SIZE_COLUMNS),
  ]
  const head = renderStepHead(step, says, columns).padEnd(columns.name + columns.text)
  return { head, rest: [times.join(' '), `   ${at}/${of}`] }
}

type Ended = BuildEvent & { readonly event: 'cached' | 'made' }

/** `took` is a time, or where else the outcome came from. */
const renderEnded = ({ step, says, bytes }: Ended, took: string, columns: Columns): string =>
  [
    renderStepHead(step, says, columns).padEnd(columns.name + columns.text),
    took.padStart(TIME_COLUMNS),
    renderBytes(bytes).padStart(SIZE_COLUMNS),
  ].join('')

/** Renders one line for people; a failure has several. */
export function renderEvent(event: BuildEvent, columns: Columns = chooseColumns([])): string {
  switch (event.event) {
    case 'started':
      return renderStepHead(event.step, event.says, columns)
    case 'cached':
      return renderEnded(event, 'cached', columns)
    case 'made':
      return renderEnded(event, renderSeconds(event.seconds), columns)
    case 'failed':
      if (event.why === INTERRUPTED) return renderStepHead(event.step, event.why, columns)
      return [
        renderStepHead(event.step, event.why, columns),
        ...event.tail.map((line) => `  │ ${line}`),
        `  the whole log: ${event.log}`,
      ].join('\n')
  }
}
