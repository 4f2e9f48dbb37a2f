/** A person who logs in with a name: what their name may be, what is kept of them, and who a provider says they are. */
import { z } from 'zod'
import { LabelSchema } from '#fleet/machine/rules/label.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { type Role, ROLES } from '#kit/web/answers/rules/rights.ts'

export const MAX_PEOPLE = 500

const NAME = /^[a-z0-9][a-z0-9._@+-]{0,63}$/
const RESERVED: ReadonlySet<string> = new Set(['administrator', 'operator', 'system', 'pxe-client'])

export type NameRefusal = 'name-shape' | 'name-reserved'

export function parsePersonName(text: string): Result<string, NameRefusal> {
  const name = text.trim().toLowerCase()
  if (!NAME.test(name)) return refuse('name-shape')
  return RESERVED.has(name) ? refuse('name-reserved') : accept(name)
}

/** An unreadable role becomes none; an unreadable scope contains no machine. */
export const PersonRecordSchema = z.object({
  name: z.string(),
  role: z.enum(ROLES).nullable().catch(null),
  /** A machine is in the scope if it has any of these labels; null: no scope. */
  labels: z.array(z.string()).readonly().nullable().default(null).catch([]),
  created_at: z.string(),
  /** The provider that decides who they are and their role; null: they have a password here. */
  provider: z
    .object({ issuer: z.string(), subject: z.string() })
    .readonly()
    .nullable()
    .default(null),
  /** ISO time of the last login; null: never, or not recorded. */
  seen_at: z.string().nullable().default(null),
  /** ISO time since which they may not log in; null: they may. */
  blocked_at: z.string().nullable().default(null),
})

export const OwnSessionsSchema = z.object({
  /** Valid sessions name this mark; empty: no session is valid. */
  mark: z.string().default(''),
  /** Sessions ended one by one, with their natural end in seconds of the epoch. */
  ended: z.record(z.string(), z.number()).default({}),
})
export type OwnSessions = Readonly<z.infer<typeof OwnSessionsSchema>>

export interface Person extends Readonly<z.infer<typeof PersonRecordSchema>> {
  readonly id: string
}

export type PersonRights = Pick<Person, 'role' | 'labels'>

export type NewPerson = Pick<Person, 'name' | 'role' | 'labels'> & Partial<Pick<Person, 'provider'>>

// The scope of a person: the labels of the machines that they see and change.

/** As JSON: the labels are part of the session, which has at most 768 characters. */
export const MAX_SCOPE_CHARACTERS = 256

export type ScopeRefusal = 'scope-label' | 'scope-long'

/** Trims and deduplicates. A scope without labels contains no machine. */
export function parseScope(given: readonly string[]): Result<readonly string[], ScopeRefusal> {
  const labels = [...new Set(given.map((label) => label.trim()))].toSorted()
  if (JSON.stringify(labels).length > MAX_SCOPE_CHARACTERS) return refuse('scope-long')
  const isFine = labels.every((label) => LabelSchema.safeParse(label).success)
  return isFine ? accept(labels) : refuse('scope-label')
}

// Decides whether the administrator may log in with the password alone, beside people with names.

export type NamelessLogin = 'always' | 'off'

interface OtherWays {
  /** People who administrate and can log in now (own password, or a provider that answers). */
  readonly administrators: number
}

export function allowsNamelessLogin(wanted: NamelessLogin, { administrators }: OtherWays): boolean {
  return wanted === 'always' || administrators === 0
}

/** What a provider says; its texts are of any length. */
type Claims = Readonly<Record<string, unknown>> & {
  readonly iss: string
  readonly sub: string
}

export interface ClaimMapping {
  /** The preferred claim for the name; the usual ones follow. */
  readonly nameClaim: string
  readonly roleClaims: readonly string[]
  readonly values: Readonly<Record<Role, readonly string[]>>
  /** Lines of `value; label; label`, or `value; *` for all machines. */
  readonly scopes: readonly string[]
}

export interface ProviderIdentity {
  readonly issuer: string
  readonly subject: string
  readonly names: readonly string[]
  /** Null: no claim gives one. */
  readonly role: Role | null
  /** Null: no scope. Many groups may give more labels than a session can hold. */
  readonly labels: readonly string[] | null
  readonly values: readonly string[]
  readonly missing: readonly string[]
  /** Claims that the provider left out because of too many values, as Entra ID does with groups. */
  readonly tooLong: readonly string[]
}

const MAX_VALUES = 2000
const MAX_VALUE_CHARACTERS = 512
/** Leaves room for a number at the end. */
const MAX_NAME_CHARACTERS = 60
/** Names that are taken get a number. */
const MAX_NUMBER = 99

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

/** With scopes configured, who matches none sees no machine: a forgotten group opens nothing. */
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

export const listGivenLabels = (scopes: readonly string[]): readonly string[] =>
  splitScopes(scopes).flatMap((line) => line.slice(1).filter((label) => label !== ALL))

const ALL = '*'

/** The provider points to another place for the claim, or says that it is incomplete. */
const isTooLong = (claims: Claims, claim: string): boolean =>
  findClaim(claims, `_claim_names.${claim}`) !== undefined ||
  (claim === 'groups' && claims['hasgroups'] === true)

export const hasAllClaims = (
  claims: Claims,
  { nameClaim, roleClaims }: Pick<ClaimMapping, 'nameClaim' | 'roleClaims'>,
): boolean => [nameClaim, ...roleClaims].every((claim) => findClaim(claims, claim) !== undefined)

/** A dot leads into an object (`realm_access.roles`). Null: absent, or not to be trusted. */
function readClaim(claims: Claims, path: string): readonly string[] | null {
  const found = findClaim(claims, path)
  // An unverified address could be somebody else's.
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

/** Best first; each in the form of names here. */
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

// What the tools of the operating system say of an account's password, and what they accept.

/** PAM's helper reads 512 bytes including the final NUL. */
const MAX_BYTES = 511

/**
 * Input of `unix_chkpwd`. A NUL would end the password early, so that any suffix were right; a
 * longer one would be cut.
 */
export function encodePassword(given: string): Result<string, 'unusable'> {
  const isUsable =
    given !== '' && !given.includes('\0') && Buffer.byteLength(given, 'utf8') <= MAX_BYTES
  return isUsable ? accept(`${given}\0`) : refuse('unusable')
}

export const NO_PASSWORD = '\0'

export function parseVerdict(exitCode: number): 'right' | 'wrong' | null {
  if (exitCode === 0) return 'right'
  return exitCode === 7 ? 'wrong' : null
}

/** The second word of `passwd -S`; null: unknown. */
export function parseAccountStatus(text: string): 'set' | 'locked' | 'none' | null {
  const word = /^\S+ (\w+)/.exec(text)?.[1] ?? ''
  return STATUSES[word] ?? null
}

const STATUSES: Readonly<Record<string, 'set' | 'locked' | 'none'>> = {
  P: 'set',
  PS: 'set',
  L: 'locked',
  LK: 'locked',
  NP: 'none',
}

export const parseNoNewPrivileges = (status: string): boolean => /^NoNewPrivs:\s*1$/m.test(status)
