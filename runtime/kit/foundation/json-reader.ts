/** Parses JSON from outside without throwing. */
import { safeDestr } from 'destr'

/**
 * JSON from outside; undefined: it is none, or it names a `__proto__`, which a later copy of it could
 * put to work.
 */
export function parseJson(text: string): unknown {
  try {
    // Of texts and words destr reads more than JSON allows; objects and lists it leaves to JSON.parse.
    const value: unknown = /^\s*[[{]/.test(text) ? safeDestr(text) : JSON.parse(text)
    return typeof value === 'number' && !Number.isFinite(value) ? undefined : value
  } catch {
    return undefined
  }
}
