/** Chooses the content coding of a response by the request's Accept-Encoding (RFC 9110, 12.5.3). */
import { createHash } from 'node:crypto'

/** The one to prefer first. */
const CODINGS = ['br', 'gzip'] as const
export type Coding = (typeof CODINGS)[number]

interface CodingChoice {
  /** Null: as it is. */
  readonly coding: Coding | null
  /** The client refuses the plain bytes, so that even a short body is compressed. */
  readonly isRequired: boolean
}

const PLAIN: CodingChoice = { coding: null, isRequired: false }
/** Browsers send four. */
const MAX_ENTRIES = 32

/** Without that header the body stays plain. */
export function chooseCoding(header: string | null): CodingChoice {
  const weights = parseWeights(header ?? '')
  const others = weights.get('*')
  const weightOf = (coding: Coding) => weights.get(coding) ?? others ?? 0
  // A stable sort: brotli stays first where both weigh the same.
  const [coding] = CODINGS.toSorted((one, two) => weightOf(two) - weightOf(one))
  if (coding === undefined || weightOf(coding) === 0) return PLAIN
  // Unless it is named, the plain body is the last resort, and `*;q=0` refuses it, too.
  const plain = weights.get('identity') ?? others
  if (weights.has('identity') && (plain ?? 0) > weightOf(coding)) return PLAIN
  return { coding, isRequired: plain === 0 }
}

/** By lower-case name, from 0 to 1. An entry that cannot be read counts as refused. */
function parseWeights(header: string): ReadonlyMap<string, number> {
  const entries = header.split(',', MAX_ENTRIES).map((entry): readonly [string, number] => {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
    const weight = parameters.find((part) => part.startsWith('q='))
    return [name === 'x-gzip' ? 'gzip' : name, weight === undefined ? 1 : parseWeight(weight)]
  })
  return new Map(entries)
}

const parseWeight = (text: string): number =>
  /^q=(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(text) ? Number(text.slice(2)) : 0

// Entity tags: computed for texts that are rendered for each request, and compared before a change.

export const etagOf = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`

/**
 * By `If-Match`, which guards against overwriting what another changed, and by `If-None-Match`, of
 * which `*` creates only (RFC 9110, 13.1). `tag`: of what is there; null: nothing.
 */
export function meetsConditions(headers: Pick<Headers, 'get'>, tag: string | null): boolean {
  const [wanted, unwanted] = [headers.get('if-match'), headers.get('if-none-match')]
  if (wanted !== null && !isNamed(wanted, tag)) return false
  return unwanted === null || !isNamed(unwanted.replaceAll('W/', ''), tag)
}

const isNamed = (header: string, tag: string | null): boolean =>
  tag !== null && (header.trim() === '*' || header.split(',').some((each) => each.trim() === tag))
