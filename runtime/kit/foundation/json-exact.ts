/** Reads JSON so that it can be written again with every number as it was spelled. */
import { parseJson } from './json-reader.ts'

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
