/** What a server asks for with a 401: the challenges of `WWW-Authenticate` (RFC 9110, 11.6.1). */

export interface Challenge {
  /** Lower case. */
  readonly scheme: string
  /** Names in lower case. */
  readonly params: ReadonlyMap<string, string>
}

const LONGEST = 8192
const TOKEN = "[!#$%&'*+.^_`|~0-9a-z-]+"
const VALUE = '"(?<quoted>(?:[^"\\\\]|\\\\.)*)"|(?<bare>[^\\s,"]+)'
const PART = new RegExp(
  `(?<name>${TOKEN})[ \\t]*=[ \\t]*(?:${VALUE})|(?<scheme>${TOKEN})(?=[ \\t,]|$)|[ \\t,]+`,
  'giy',
)

/** In the order in which they stand; reading ends at the first thing that is no challenge. */
export function parseChallenges(header: string): readonly Challenge[] {
  const found: { readonly scheme: string; readonly params: Map<string, string> }[] = []
  for (const { groups = {} } of header.slice(0, LONGEST).matchAll(PART)) {
    const { scheme, name, quoted, bare = '' } = groups
    if (scheme !== undefined) found.push({ scheme: scheme.toLowerCase(), params: new Map() })
    const [key, params] = [name?.toLowerCase(), found.at(-1)?.params]
    // The first value counts, so that nothing behind it can change what was asked for.
    if (key === undefined || params === undefined || params.has(key)) continue
    params.set(key, quoted?.replaceAll(/\\(.)/g, '$1') ?? bare)
  }
  return found
}
