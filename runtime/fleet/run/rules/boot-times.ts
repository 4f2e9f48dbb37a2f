/** Decides when a live system began, by what it says of its own boot with its request for a plan. */
import { epochOf } from '../../../kit/foundation/instants.ts'

/** What it says, in seconds. */
export interface BootTimes {
  /** The time that its kernel has run. */
  readonly up: number
  /** The time from then until its system began, after the initrd. */
  readonly system: number
  /** The time from the reset of the hardware until its kernel ran; null: its firmware does not tell. */
  readonly firmware: number | null
}

/** The same as instants of the server's clock, ISO 8601. */
export interface ToldStamps {
  readonly reset_at?: string
  readonly start_at?: string
  readonly system_at?: string
}

/** A live system that waits for days has no use for bars. */
const MAX_SECONDS = 86_400
/** The rounding of both sides, and the way of the request. */
const TOLERANCE_MS = 2000

type ToldQuery = Readonly<Record<string, string | undefined>>

/** Returns what a machine says; null: nothing, or nothing that can be. */
export function parseBootTimes({ up, system, firmware }: ToldQuery): BootTimes | null {
  const [lasts, begins] = [parseSeconds(up), parseSeconds(system)]
  if (lasts === null || begins === null || begins > lasts) return null
  return { up: lasts, system: begins, firmware: parseSeconds(firmware) }
}

function parseSeconds(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,5}(?:\.\d{1,3})?$/.test(text)) return null
  const seconds = Number(text)
  return seconds <= MAX_SECONDS ? seconds : null
}

/** `now` in milliseconds since the epoch; `asked`: when it last asked for a file of its live system, which was before (ISO). */
export function decideToldStamps(
  { up, system, firmware }: BootTimes,
  now: number,
  asked: string | null,
): ToldStamps {
  const least = asked === null ? -Infinity : epochOf(asked)
  const start = now - up * 1000
  // Whoever ran before the server gave it a kernel tells of another boot.
  if (start < least - TOLERANCE_MS) return {}
  const begun = Math.max(start, least)
  const told = { start_at: iso(begun), system_at: iso(Math.max(begun, start + system * 1000)) }
  return firmware === null ? told : { ...told, reset_at: iso(start - firmware * 1000) }
}

const iso = (ms: number) =>
  Temporal.Instant.fromEpochMilliseconds(Math.round(ms)).toString({ fractionalSecondDigits: 3 })
