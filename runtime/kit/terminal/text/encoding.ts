/** Converts text for terminals without UTF-8: ASCII of the same width. */
import { displayWidth } from '#kit/foundation/printable.ts'
import type { Environment } from '#kit/host/shell.ts'
import { isUtf8, type Output } from './terminal-style.ts'

export type Encode = (text: string) => string

/** As it is where the locale says UTF-8, else as ASCII. */
export const encodeFor = (env: Environment): Encode => (isUtf8(env) ? (text) => text : toAscii)

/** For lines that nothing is drawn over. */
export const encodeOutput = (output: Pick<Output, 'write'>, env: Environment): Output => {
  const encode = encodeFor(env)
  return { write: (text) => output.write(encode(text)) }
}

/** Letters lose their accents, and `?` stands for what has no letter: `Gro?e`. */
function toAscii(text: string): string {
  if (isAscii(text)) return text
  graphemes ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  return Array.from(graphemes.segment(text), ({ segment }) => replace(segment)).join('')
}

/** Made when it is first needed: that takes 15 ms. */
let graphemes: Intl.Segmenter | null = null

// oxlint-disable-next-line no-control-regex
const isAscii = (text: string) => /^[\0-\x7f]*$/.test(text)

const SIGNS: Readonly<Record<string, string>> = { '…': '.', '–': '-', '‘': "'", '’': "'" }

function replace(grapheme: string): string {
  if (isAscii(grapheme)) return grapheme
  const sign = SIGNS[grapheme]
  if (sign !== undefined) return sign
  const letter = grapheme.normalize('NFD').charAt(0)
  const width = displayWidth(grapheme)
  return width === 1 && isAscii(letter) ? letter : '?'.repeat(width)
}
