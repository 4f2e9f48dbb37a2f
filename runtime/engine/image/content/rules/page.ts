/** Recognises text where a disk image should be: a web page, an error message, a list of checksums. */
import { Fault } from '#kit/foundation/fault.ts'

/** Text that reaches this end goes on behind it. */
const SAMPLE_BYTES = 64 * 1024

const KINDS = [
  ['an HTML page', /^(<!--[^]*?-->\s*)*<(!doctype\s+html|html|head|body|title|script|meta)\b/i],
  ['an XML document', /^<(\?xml|!doctype|!--|[a-z][\w.:-]*[\s/>])/i],
  ['a JSON document', /^(\{\s*["}]|\[\s*[[{"\]\d])/],
] as const

/** Words to stand behind "holds"; null: no text. */
export function describePage(head: Buffer): string | null {
  const text = parseText(head.subarray(0, SAMPLE_BYTES))
  if (text === null) return null
  const [first = ''] = text
  // A test pattern of one printable byte is no text.
  if (text.length > 1 && first.trim() !== '' && text === first.repeat(text.length)) return null
  const start = text.trimStart()
  const found = KINDS.find(([, pattern]) => pattern.test(start))
  if (found !== undefined) return found[0]
  return start === '' ? 'nothing but blanks' : 'plain text'
}

const NO_TEXT = /(?![\b\t\n\v\f\r\u0080-\u009f])\p{Cc}/u

const ENCODINGS = [
  ['utf-16le', Buffer.from([0xff, 0xfe])],
  ['utf-16be', Buffer.from([0xfe, 0xff])],
] as const

/** Null: no text. Skips a character that is cut off. */
function parseText(bytes: Buffer): string | null {
  if (bytes.length === 0) return null
  const mark = ENCODINGS.find(([, order]) => bytes.subarray(0, 2).equals(order))
  const text = decode(bytes, mark?.[0] ?? 'utf-8') ?? (mark === undefined ? asLatin(bytes) : null)
  return text === null || text === '' || NO_TEXT.test(text) ? null : text
}

function decode(bytes: Buffer, encoding: string): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return null
  }
}

/** Older pages are in Latin-1: most of their bytes are ASCII. */
function asLatin(bytes: Buffer): string | null {
  const others = bytes.reduce((count, byte) => count + (byte < 0x80 ? 0 : 1), 0)
  return bytes.length >= 64 && others * 3 < bytes.length ? bytes.toString('latin1') : null
}

export const notAnImage = (name: string, what: string): Fault =>
  new Fault('plan-refused', `${name} is not a disk image: ${what}`, { hint: OVERRIDE })

/** For every surface: a command has the option, a catalog the field. */
const OVERRIDE =
  'If it is meant to be written as it is, name its format with --format, or set any_content in the catalog.'
