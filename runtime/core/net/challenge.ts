/** What a server asks for with a 401: the challenges of `WWW-Authenticate` (RFC 9110, 11.6.1). */

export interface Challenge {
  /** Lower case. */
  readonly scheme: string
  /** Names in lower case. */
  readonly params: ReadonlyMap<string, string>
}

const LONGEST = 8192
const TOKEN = "[!#$%&'*+.^_`|~0-9a-z-]+"
const PARAM = new RegExp(`(${TOKEN})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s,"]+))`, 'iy')
const SCHEME = new RegExp(`(${TOKEN})(?=[ \\t,]|$)`, 'iy')
const BLANK = /[ \t,]+/y

/** In the order in which they stand; reading ends at the first thing that is no challenge. */
export function parseChallenges(header: string): readonly Challenge[] {
  const text = header.slice(0, LONGEST)
  const found: Growing[] = []
  let at = lengthAt(BLANK, text, 0)
  for (let length = takeOne(text, at, found); length > 0; length = takeOne(text, at, found)) {
    at += length
    at += lengthAt(BLANK, text, at)
  }
  return found
}

interface Growing extends Challenge {
  readonly params: Map<string, string>
}

/** Adds a scheme, or a parameter to the last one; the characters that it took. */
function takeOne(text: string, at: number, found: Growing[]): number {
  const param = matchAt(PARAM, text, at)
  if (param !== null) {
    note(found.at(-1)?.params, param)
    return param[0].length
  }
  const [scheme = ''] = matchAt(SCHEME, text, at) ?? []
  if (scheme !== '') found.push({ scheme: scheme.toLowerCase(), params: new Map() })
  return scheme.length
}

const lengthAt = (pattern: RegExp, text: string, at: number) =>
  matchAt(pattern, text, at)?.[0].length ?? 0

/** The first value counts, so that nothing behind it can change what was asked for. */
function note(
  params: Map<string, string> | undefined,
  [, name = '', quoted, bare]: RegExpExecArray,
) {
  const key = name.toLowerCase()
  if (params === undefined || params.has(key)) return
  params.set(key, quoted === undefined ? (bare ?? '') : quoted.replaceAll(/\\(.)/g, '$1'))
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  const sticky = new RegExp(pattern)
  sticky.lastIndex = at
  return sticky.exec(text)
}
