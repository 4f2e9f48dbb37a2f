/** Parses the challenges of a 401: `WWW-Authenticate` (RFC 9110, 11.6.1). */

export interface Challenge {
  /** The name of the scheme in lower case. */
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

interface Growing extends Challenge {
  readonly params: Map<string, string>
}

/**
 * Lists the challenges in the order in which they stand; reading ends at the first thing that is no
 * challenge, and after 8192 characters.
 */
export function parseChallenges(header: string): readonly Challenge[] {
  const found: Growing[] = []
  for (const { groups = {} } of header.slice(0, LONGEST).matchAll(PART)) {
    const { scheme, name } = groups
    if (scheme !== undefined) found.push({ scheme: scheme.toLowerCase(), params: new Map() })
    if (name !== undefined) note(found.at(-1)?.params, name.toLowerCase(), groups)
  }
  return found
}

/** The first value counts, so that nothing behind it can change what was asked for. */
function note(
  params: Map<string, string> | undefined,
  name: string,
  { quoted, bare = '' }: Readonly<Record<string, string | undefined>>,
) {
  if (params?.has(name) === false) params.set(name, quoted?.replaceAll(/\\(.)/g, '$1') ?? bare)
}
