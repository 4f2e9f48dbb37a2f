/** Decides when a live system began, by what it says of its own boot with its request for a plan. */
import { epochOf } from '#kit/foundation/instants.ts'

export interface BootTimes {
  /** Seconds that its kernel has run. */
  readonly up: number
  /** Seconds from the kernel's start to the system's, after the initrd. */
  readonly system: number
  /** Seconds from hardware reset to kernel; null: the firmware does not tell. */
  readonly firmware: number | null
}

/** ISO 8601, by the server's clock. */
export interface ToldStamps {
  readonly reset_at?: string
  readonly start_at?: string
  readonly system_at?: string
}

/** A live system that waits for days needs no bars. */
const MAX_SECONDS = 86_400
/** Rounding on both sides, and the request's way. */
const TOLERANCE_MS = 2000

type ToldQuery = Readonly<Record<string, string | undefined>>

/** Null: nothing, or impossible. */
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

/** `now` in milliseconds; `asked`: when it last asked for a file of its live system (ISO). */
export function decideToldStamps(
  { up, system, firmware }: BootTimes,
  now: number,
  asked: string | null,
): ToldStamps {
  const least = asked === null ? -Infinity : epochOf(asked)
  const start = now - up * 1000
  // A kernel older than the server's answer belongs to another boot.
  if (start < least - TOLERANCE_MS) return {}
  const begun = Math.max(start, least)
  const told = { start_at: iso(begun), system_at: iso(Math.max(begun, start + system * 1000)) }
  return firmware === null ? told : { ...told, reset_at: iso(start - firmware * 1000) }
}

const iso = (ms: number) =>
  Temporal.Instant.fromEpochMilliseconds(Math.round(ms)).toString({ fractionalSecondDigits: 3 })
