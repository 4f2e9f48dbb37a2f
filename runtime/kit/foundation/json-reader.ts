/** JSON from outside: parsed without throwing, with every number as it was spelled, or only measured; and as documents spell it. */
import { safeDestr } from 'destr'

/** Undefined: no JSON, or it names a `__proto__`, which a later copy could put to work. */
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

/** What the compiler's library does not know yet (ECMAScript 2026). */
declare global {
  interface JSON {
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown
    rawJSON(text: string): object
  }
}

/**
 * Parses JSON from outside; undefined where the text is none. Numbers that JavaScript would spell
 * otherwise (2^53 and more, `1.0`) become what `JSON.stringify` writes as they were.
 */
export function parseExact(text: string): unknown {
  const plain = parseJson(text)
  // A reviver takes many times as long, and nearly no tree has such a number.
  return plain === undefined || !ODD_NUMBER.test(text) ? plain : JSON.parse(text, keepSpelling)
}

/** This finds numbers behind a key or in a list; a hit in a text costs only time. */
const ODD_NUMBER = /(?:":|[[,])\s*-?(?:\d{16}|\d+[.eE]|0[,\s\]}])/

const keepSpelling = (_key: string, value: unknown, { source }: { readonly source?: string }) =>
  typeof value === 'number' && source !== undefined && String(value) !== source
    ? JSON.rawJSON(source)
    : value

interface Member {
  /** Its value begins here, and ends before `to`. */
  readonly from: number
  readonly to: number
  readonly values: number
}

interface JsonOutline {
  /** Lists and objects inside of each other. */
  readonly depth: number
  readonly values: number
  /** The last member of this name of the outermost object; null: it has none. */
  readonly member: Member | null
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
const BLANK = 0x20

/**
 * JSON.parse takes 100 bytes of memory and more for a value of three bytes, and nothing can stop it: what
 * comes from anybody is looked at first. Bytes that are no JSON yield figures that mean nothing.
 */
export function outlineJson(bytes: Buffer, name = ''): JsonOutline {
  let [depth, deepest, values, last] = [0, 0, 1, 0]
  let [textFrom, textTo] = [0, 0]
  let begun: Omit<Member, 'to'> | null = null
  let member: Member | null = null

  function endMember(before: number) {
    if (begun === null || depth > 1) return
    let to = before
    while (to > begun.from && (bytes[to - 1] ?? 0) <= BLANK) to -= 1
    member = { from: begun.from, to, values: values - begun.values }
    begun = null
  }

  function beginMember(at: number) {
    if (depth !== 1 || textTo - textFrom > 6 * name.length) return
    const text = bytes.toString('latin1', textFrom, textTo)
    // A key may be spelled with escapes, of six characters each.
    if (text !== name && (!text.includes('\\') || parseJson(`"${text}"`) !== name)) return
    let from = at
    while ((bytes[from] ?? QUOTE) <= BLANK) from += 1
    begun = { from, values }
  }

  function close(at: number) {
    endMember(at)
    if (last !== OPEN_LIST && last !== OPEN_OBJECT) values += 1
    depth -= 1
  }

  function look(byte: number, at: number) {
    switch (byte) {
      case COLON:
        return beginMember(at + 1)
      case OPEN_LIST:
      case OPEN_OBJECT:
        depth += 1
        deepest = Math.max(deepest, depth)
        return
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        return close(at)
      case COMMA:
        endMember(at)
        values += 1
    }
  }

  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0
    if (byte <= BLANK) continue
    if (byte === QUOTE) {
      textFrom = at + 1
      textTo = at = findQuote(bytes, textFrom)
    } else look(byte, at)
    last = byte
  }
  return { depth: deepest, values, member }
}

/** The end of a text that begins here. */
function findQuote(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at
}
