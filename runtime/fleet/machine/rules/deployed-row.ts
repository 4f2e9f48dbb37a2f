/** Decodes a row of the deployed server's machine table: its spelling of times and objects becomes ours. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'

const time = z.iso.datetime({ offset: true })

export const decodeDeployedRow = (
  row: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, decode(name, value)]))

/** Its times have an offset and microseconds, and it keeps an object as text. */
function decode(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (name === 'last_known_good') return parseJson(value)
  if (!name.endsWith('_at') || !time.safeParse(value).success) return value
  return Temporal.Instant.from(value).toString({ fractionalSecondDigits: 3 })
}
