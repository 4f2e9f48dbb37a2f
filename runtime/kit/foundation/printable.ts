/** Makes text from outside safe for a terminal: no control sequences, no reversed text direction. */

/** Control characters, bidirectional overrides, line separators, invisible joiners, lone surrogates. */
const UNSAFE =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu

/** Renders text as one line with each unsafe character as `\x1b` or `\u202e`. */
export const printable = (text: string): string => text.replace(UNSAFE, escape)

export const printableLines = (text: string): readonly string[] =>
  text.split(/\r\n|\n|\r/).map(printable)

/** As `printable`, but keeps line ends (all as `\n`) and tabs: for a log, or a cell. */
export const printableText = (text: string): string =>
  text
    .replaceAll(/\r\n?/g, '\n')
    .replace(UNSAFE, (character) => (/[\n\t]/.test(character) ? character : escape(character)))

/** Does what `printable` does to indented JSON, in escapes of JSON: it means the same to who parses it. */
export const printableJson = (json: string): string =>
  json.replace(UNSAFE, (character) =>
    character === '\n' ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const PARTS_WORDS = /[\t-\r\x85\u2028\u2029]/

/**
 * Makes words that others sent safe for whoever prints them as they are (`jq -r`): what parts words
 * or lines becomes a blank, everything else that is unsafe U+FFFD. The text stays as long as it
 * was. What must match exactly later is not for this: serials, paths, WWNs, URLs.
 */
export const plainWords = (text: string): string =>
  text.replace(UNSAFE, (character) => (PARTS_WORDS.test(character) ? ' ' : '\ufffd'))

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u

/** Made when it is first needed: that takes 15 ms. */
let graphemes: Intl.Segmenter | null = null

export function displayWidth(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length
  graphemes ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += WIDE.test(segment) ? 2 : 1
  return width
}

function escape(character: string): string {
  const code = character.charCodeAt(0)
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`
}
