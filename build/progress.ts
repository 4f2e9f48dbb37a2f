/** What a build says while it runs, and how long it will still take by how long it took before. */

export type BuildEvent =
  | {
      readonly event: 'started'
      readonly step: string
      readonly says: string
      readonly log: string
    }
  | { readonly event: 'cached'; readonly step: string; readonly says: string }
  | {
      readonly event: 'made'
      readonly step: string
      readonly says: string
      readonly seconds: number
    }
  | {
      readonly event: 'failed'
      readonly step: string
      readonly why: string
      readonly log: string
      /** The log's last lines. */
      readonly tail: readonly string[]
    }

/** Seconds that each step took when it last ran here, by its name. */
export type Durations = Readonly<Record<string, number>>

/** A step that never ran here is taken for this long. */
const UNKNOWN_SECONDS = 20

/** Seconds for `names`, all of which are still to run. */
export const expectSeconds = (names: readonly string[], durations: Durations): number =>
  names.reduce((sum, name) => sum + (durations[name] ?? UNKNOWN_SECONDS), 0)

/** What is no table of numbers is an empty one: an estimate is all that is lost. */
export function parseDurations(text: string): Durations {
  try {
    const value: unknown = JSON.parse(text)
    const rows = typeof value === 'object' && value !== null ? Object.entries(value) : []
    return Object.fromEntries(
      rows.filter((row): row is [string, number] => typeof row[1] === 'number'),
    )
  } catch {
    return {}
  }
}

/** `1 min 05 s`, `40 s`. */
export function renderSeconds(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  const rest = whole % 60
  return whole < 60
    ? `${whole} s`
    : `${Math.floor(whole / 60)} min ${String(rest).padStart(2, '0')} s`
}

const WIDEST_NAME = 18

/** One line for people; a failure has several. */
export function renderEvent(event: BuildEvent): string {
  const head = (mark: string) => `${mark} ${event.step.padEnd(WIDEST_NAME)}`
  switch (event.event) {
    case 'started':
      return `${head('·')} ${event.says}`
    case 'cached':
      return `${head('✓')} ${event.says}: as before`
    case 'made':
      return `${head('✓')} ${event.says}: ${renderSeconds(event.seconds)}`
    case 'failed':
      return [
        `${head('✗')} ${event.why}`,
        ...event.tail.map((line) => `    ${line}`),
        `  the whole log: ${event.log}`,
      ].join('\n')
  }
}
