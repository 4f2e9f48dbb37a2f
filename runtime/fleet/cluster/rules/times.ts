/** How long servers that share a database wait for each other and for it; only tests give shorter times. */
import { Fault } from '../../../kit/foundation/fault.ts'
import { parseJson } from '../../../kit/foundation/json-reader.ts'

/** All of them in milliseconds. */
export const TIMES = {
  /** A leader that has not renewed the lease for so long is taken for gone. */
  leaseMs: 5000,
  /**
   * Readings further apart count as if they were so far apart: this process or the database may have been
   * stopped meanwhile, and a leader that was held up by the same has to have its time to renew.
   */
  gapMs: 2000,
  /**
   * A leader answers from memory for so long after it asked whether the lease is its own, and it was. Nobody
   * else leads by then: the database ends a session in which it hears nothing after 3 s at the earliest.
   */
  sureMs: 2500,
  /** Whoever waits for an answer learns after so long that there is none; clients give up after 15 s. */
  holdMs: 12_000,
  /** The database itself gives up on a statement of a group. */
  statementMs: 3000,
  /** This is for a database that has gone silent. */
  answerMs: 6000,
} as const

export type ClusterTimes = Readonly<Record<keyof typeof TIMES, number>>

/**
 * Reads the times that a test gives a server in FLASHER_TEST_TIMES, as JSON; undefined: it gives none.
 * Throws a Fault for anything but shorter ones.
 */
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
