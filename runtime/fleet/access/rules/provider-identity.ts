/** Decides who somebody is by what an OpenID provider says of them, and which role that gives. */
import { ROLES, type Role } from '../../../kit/web/answers/rules/rights.ts'
import { parsePersonName } from './person.ts'

/** What a provider says; the texts in it are of any length. */
type Claims = Readonly<Record<string, unknown>> & {
  readonly iss: string
  readonly sub: string
}

/** What is made of it, as `[oidc]` says. */
export interface ClaimMapping {
  /** The claim that has the name; the usual ones follow. */
  readonly nameClaim: string
  /** The claims whose values give roles. */
  readonly roleClaims: readonly string[]
  /** The values that give each role. */
  readonly values: Readonly<Record<Role, readonly string[]>>
  /** The values that give labels of a scope, each with these: `value; label; label`, or `value; *` for all machines. */
  readonly scopes: readonly string[]
}

export interface ProviderIdentity {
  readonly issuer: string
  readonly subject: string
  /** What they may be called here, the best first; none of them is proven to be theirs alone. */
  readonly names: readonly string[]
  /** Null: nothing that was said gives one. */
  readonly role: Role | null
  /** The labels of their scope; null: they have none. Those of many groups may be too long for a session. */
  readonly labels: readonly string[] | null
  /** What was said that can give a role. */
  readonly values: readonly string[]
  /** The claims that the provider did not send. */
  readonly missing: readonly string[]
  /** Those of them that it left out since they would have too many values, as Entra ID does with groups. */
  readonly tooLong: readonly string[]
}

/** A group with more members than this has names is no list of a person's. */
const MAX_VALUES = 2000
const MAX_VALUE_CHARACTERS = 512
/** Leaves room for a number behind it. */
const MAX_NAME_CHARACTERS = 60
/** Names that are taken get a number. */
const MAX_NUMBER = 99

/** Decides it; the highest role wins that a value gives. */
export function identify(claims: Claims, mapping: ClaimMapping): ProviderIdentity {
  const found = mapping.roleClaims.map((claim) => ({ claim, values: readClaim(claims, claim) }))
  const values = [...new Set(found.flatMap((each) => each.values ?? []))]
  const gives = (role: Role) => mapping.values[role].some((value) => values.includes(value))
  const missing = found.filter((each) => each.values === null).map(({ claim }) => claim)
  const role = ROLES.toReversed().find(gives) ?? null
  return {
    issuer: claims.iss,
    subject: claims.sub,
    names: listNames(claims, mapping.nameClaim),
    role,
    labels: role === 'administrate' ? null : decideLabels(values, mapping.scopes),
    values,
    missing,
    tooLong: missing.filter((claim) => isTooLong(claims, claim)),
  }
}

/** Whoever matches no line sees no machine once there is one: a group that was forgotten opens nothing. */
function decideLabels(
  values: readonly string[],
  scopes: readonly string[],
): readonly string[] | null {
  if (scopes.length === 0) return null
  const labels = splitScopes(scopes).flatMap(([value = '', ...of]) =>
    values.includes(value) ? of : [],
  )
  return labels.includes(ALL) ? null : [...new Set(labels)].toSorted()
}

const splitScopes = (scopes: readonly string[]) =>
  scopes.map((line) => line.split(';').map((part) => part.trim()))

/** Lists the labels that some group gives. */
export const listGivenLabels = (scopes: readonly string[]): readonly string[] =>
  splitScopes(scopes).flatMap((line) => line.slice(1).filter((label) => label !== ALL))

/** Stands for all machines in the place of a label. */
const ALL = '*'

/** A provider says where such a claim could be asked for, or that there is more than it says. */
const isTooLong = (claims: Claims, claim: string): boolean =>
  findClaim(claims, `_claim_names.${claim}`) !== undefined ||
  (claim === 'groups' && claims['hasgroups'] === true)

/** Whether an ID token has all claims that the mapping asks for. */
export const hasAllClaims = (
  claims: Claims,
  { nameClaim, roleClaims }: Pick<ClaimMapping, 'nameClaim' | 'roleClaims'>,
): boolean => [nameClaim, ...roleClaims].every((claim) => findClaim(claims, claim) !== undefined)

/**
 * Reads the values of a claim: a text, or a list of them. A dot leads into an object where no claim has
 * that whole name (`realm_access.roles`). Null: there is no such claim, or none that counts.
 */
function readClaim(claims: Claims, path: string): readonly string[] | null {
  const found = findClaim(claims, path)
  // Whoever sets their own address to somebody else's would be taken for them.
  if (found === undefined || (path === 'email' && !isVerified(claims))) return null
  const listed: readonly unknown[] = Array.isArray(found) ? found : [found]
  return listed
    .slice(0, MAX_VALUES)
    .filter((value) => typeof value === 'string' && value.length <= MAX_VALUE_CHARACTERS)
    .map(String)
}

function findClaim(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  return path
    .split('.')
    .reduce<unknown>(
      (at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined),
      claims,
    )
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isVerified = ({ email_verified: said }: Claims): boolean => said === true || said === 'true'

/** The names of a person, from the best to the one that everybody has; each in the form of names here. */
function listNames(claims: Claims, nameClaim: string): readonly string[] {
  const said = [nameClaim, 'preferred_username', 'email', 'sub'].flatMap(
    (claim) => readClaim(claims, claim)?.slice(0, 1) ?? [],
  )
  const fit = said.flatMap((text) => {
    const name = toName(text)
    return name === '' ? [] : [name]
  })
  const best = fit[0] ?? 'somebody'
  const numbered = Array.from({ length: MAX_NUMBER - 1 }, (_, at) => `${best}-${at + 2}`)
  return [best, ...numbered].filter((name) => parsePersonName(name).ok)
}

/** What names here may not have becomes a dash. */
const toName = (text: string): string =>
  text
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9._@+-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, MAX_NAME_CHARACTERS)
    .replace(/-+$/, '')
