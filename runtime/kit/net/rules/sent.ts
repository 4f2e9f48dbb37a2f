/** What a server says of the bytes that it sends: their type, and a coding that nobody asked for. */

/** In lower case, without parameters. */
export interface Sent {
  readonly type: string | null
  /** Null: the bytes are the file's own. */
  readonly coding: string | null
}

type Header = string | readonly string[] | undefined

export function parseSent(
  headers: Readonly<{ 'content-type'?: Header; 'content-encoding'?: Header }>,
): Sent {
  const coding = firstWord(headers['content-encoding'])
  return { type: firstWord(headers['content-type']), coding: CODINGS.has(coding) ? coding : null }
}

/** Those that change bytes; some servers name others, which are mere labels. */
const CODINGS: ReadonlySet<string | null> = new Set([
  'gzip',
  'x-gzip',
  'deflate',
  'br',
  'zstd',
  'compress',
  'x-compress',
])

const firstWord = (header: Header): string | null => {
  const text = typeof header === 'string' ? header : header?.[0]
  return (
    text
      ?.split(/[;,]/, 1)[0]
      ?.trim()
      .toLowerCase()
      .replace(/[^\x21-\x7e]/g, '') || null
  )
}

const PAGES: readonly (string | null)[] = ['text/html', 'application/xhtml+xml']

/** Says why it is a web page, whatever it was asked for; null: the server does not say so. */
export const describeType = ({ type = null }: Partial<Sent> = {}): string | null =>
  PAGES.includes(type) ? `the server says that it is a web page (Content-Type: ${type})` : null

/** Tells whether bytes of this coding begin like any others, so that they do not show it. */
export const isUnmarked = ({ coding }: Sent): boolean =>
  coding !== null && !['gzip', 'x-gzip', 'zstd'].includes(coding)

/** Renders a clause that stands behind what the bytes are instead. */
export const renderCoding = (coding: string): string =>
  `the server sent it encoded (Content-Encoding: ${coding}), though it was asked not to`
