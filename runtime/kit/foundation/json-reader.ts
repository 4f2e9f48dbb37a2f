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

// Renders JSON as the documents of both lines spell it (ASCII, a blank after each comma).

/** Renders a value in ASCII, indented by two blanks, without a line end. */
export const renderJson = (value: unknown): string => ascii(JSON.stringify(value, null, 2))

/** ASCII, without a line end: `{"event": "started", "total_bytes": 300000}`. */
export const renderJsonLine = (value: unknown): string =>
  // Strings hold no raw line ends in JSON, so every one here is layout.
  ascii(JSON.stringify(value, null, 1).replaceAll(/,\n */g, ', ').replaceAll(/\n */g, ''))

const ascii = (json: string) =>
  json.replaceAll(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
