/** Parses JSON from outside without throwing. */
import { safeDestr } from 'destr'

/**
 * JSON from outside; undefined: it is none, or it names a `__proto__`, which a later copy of it could
 * put to work.
 */
export function parseJson(text: string): unknown {
  try {
    const value: unknown = safeDestr(text)
    // destr reads words that JSON does not know.
    return typeof value === 'number' && !Number.isFinite(value) ? undefined : value
  } catch {
    return undefined
  }
}
