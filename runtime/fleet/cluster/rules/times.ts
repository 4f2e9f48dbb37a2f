/** How long servers that share a database wait for each other and for it; only tests give shorter times. */
import { Fault } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'

export const TIMES = {
  /** A leader silent for so long is taken for gone. */
  leaseMs: 5000,
  /**
   * Readings further apart count as this far: this process or the database may have been stopped,
   * and a leader held up by the same must have its time to renew.
   */
  gapMs: 2000,
  /**
   * So long after asking for the lease successfully, a leader answers from memory. Nobody else
   * leads by then: the database ends a silent session after 3 s at the earliest.
   */
  sureMs: 2500,
  /** A request fails after so long; clients give up after 15 s. */
  holdMs: 12_000,
  /** The database gives up on a group's statement. */
  statementMs: 3000,
  /** For a silent database. */
  answerMs: 6000,
} as const

export type ClusterTimes = Readonly<Record<keyof typeof TIMES, number>>

/** FLASHER_TEST_TIMES as JSON; undefined: not set. Longer times are a Fault. */
export function parseTimes(text: string | undefined): ClusterTimes {
  if (text === undefined) return TIMES
  const given = parseJson(text)
  if (given === null || typeof given !== 'object') throw refuse('it is no JSON object')
  const times: Record<string, number> = { ...TIMES }
  for (const [name, value] of Object.entries<unknown>({ ...given })) {
    const most = times[name]
    if (most === undefined) throw refuse(`there is no ${name}`)
    if (typeof value !== 'number' || !(value >= 100 && value <= most))
      throw refuse(`${name} must be 100 to ${most}`)
    times[name] = value
  }
  return { ...TIMES, ...times }
}

const refuse = (why: string) =>
  new Fault('input-invalid', `FLASHER_TEST_TIMES is for tests alone: ${why}`)
