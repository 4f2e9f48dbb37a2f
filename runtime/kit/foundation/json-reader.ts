/** Parses JSON from outside without throwing. */
import { safeDestr } from 'destr'

/**
 * Parses JSON from outside. Returns undefined where the text is none, or names a `__proto__`, which
 * a later copy of it could put to work.
 */
export function parseJson(text: string): unknown {
  try {
    // The reader destr takes more texts and words than JSON allows; it leaves objects and lists to
    // JSON.parse.
    const value: unknown = /^\s*[[{]/.test(text) ? safeDestr(text) : JSON.parse(text)
    return typeof value === 'number' && !Number.isFinite(value) ? undefined : value
  } catch {
    return undefined
  }
}
