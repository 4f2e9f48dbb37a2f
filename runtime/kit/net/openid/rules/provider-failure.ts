/** Says in words why a login with an OpenID provider failed, and whose fault that is. */
import { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { describeFailure, MISDIRECTED } from '#kit/net/rules/network-failure.ts'

export interface ProviderFailure {
  /**
   * `away`: the provider does not answer. `settings`: it is not what the settings say, or does not know
   * us. `denied`: it refused the login. `spent`: it takes the answer no more. `doubtful`: what it said of the
   * person does not pass its checks.
   */
  readonly why: 'away' | 'settings' | 'denied' | 'spent' | 'doubtful'
  /** What was wrong, as a clause. */
  readonly detail: string
  /** The same for the record, where the browser brought the words along: anybody can make them up. */
  readonly noted?: string
}

/** The provider's own words are of any length. */
const MAX_WORDS = 200
/** Causes of causes; nothing of ours has as many. */
const MAX_CAUSES = 5
/** The code of openid-client for an ID token of another time. */
const LATE = 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED'
/** Clocks are said to differ from this many seconds on. */
const NOTED_SKEW = 30

const CODES: Readonly<Record<string, ProviderFailure>> = {
  OAUTH_TIMEOUT: { why: 'away', detail: 'it does not answer in time' },
  OAUTH_ABORT: { why: 'away', detail: 'it does not answer in time' },
  OAUTH_RESPONSE_IS_NOT_JSON: { why: 'away', detail: 'its answer is not JSON' },
  OAUTH_PARSE_ERROR: { why: 'away', detail: 'its answer cannot be read' },
  OAUTH_INVALID_RESPONSE: { why: 'doubtful', detail: 'its answer lacks a part' },
  OAUTH_HTTP_REQUEST_FORBIDDEN: { why: 'settings', detail: 'it names an address without TLS' },
  OAUTH_REQUEST_PROTOCOL_FORBIDDEN: { why: 'settings', detail: 'it names an unusable address' },
  OAUTH_MISSING_SERVER_METADATA: {
    why: 'settings',
    detail: 'its discovery document lacks an address',
  },
  OAUTH_INVALID_SERVER_METADATA: {
    why: 'settings',
    detail: 'its discovery document has a bad address',
  },
  OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED: {
    why: 'settings',
    detail: 'it names another issuer',
  },
  OAUTH_KEY_SELECTION_FAILED: {
    why: 'doubtful',
    detail: 'it signed with a key that it does not publish',
  },
  OAUTH_JWT_CLAIM_COMPARISON_FAILED: {
    why: 'doubtful',
    detail: 'its ID token is of another login, client or issuer',
  },
  [LATE]: { why: 'doubtful', detail: 'its ID token is not valid at this time' },
  OAUTH_UNSUPPORTED_OPERATION: {
    why: 'settings',
    detail: 'it signs in a way that is not supported',
  },
}

const UNKNOWN: ProviderFailure = {
  why: 'doubtful',
  detail: 'its answer is not valid OpenID Connect',
}

/** What the errors mean that a provider itself answers with; any other: it refused the login. */
const ERRORS: Readonly<Record<string, ProviderFailure['why']>> = {
  invalid_grant: 'spent',
  server_error: 'away',
  temporarily_unavailable: 'away',
  invalid_client: 'settings',
  unauthorized_client: 'settings',
  unsupported_grant_type: 'settings',
  unsupported_response_type: 'settings',
  invalid_scope: 'settings',
  invalid_request: 'settings',
  invalid_target: 'settings',
}

/** Each reads one error of a chain of causes; null: it says nothing of that kind. The first that says something is right. */
const READERS: readonly ((thrown: unknown) => ProviderFailure | null)[] = [
  readError,
  (thrown) => (thrown instanceof Fault ? { why: 'settings', detail: thrown.message } : null),
  readNetwork,
  (thrown) => (thrown instanceof Response ? readStatus(thrown.status) : null),
  (thrown) => CODES[codeOf(thrown)] ?? null,
]

/**
 * `skew`: how many seconds the provider's clock is ahead of ours, as it last said; null: it did not
 * say.
 */
export function describeProviderFailure(thrown: unknown, skew: number | null): ProviderFailure {
  const chain = listCauses(thrown)
  const [found = UNKNOWN] = READERS.flatMap((read) =>
    chain.map(read).filter((failure) => failure !== null),
  )
  const isLate = found === CODES[LATE] && skew !== null && Math.abs(skew) > NOTED_SKEW
  return isLate ? { ...found, detail: `${found.detail}: ${describeSkew(skew)}` } : found
}

const describeSkew = (seconds: number): string =>
  `its clock is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} the one of this server`

function listCauses(thrown: unknown): readonly unknown[] {
  const chain: unknown[] = []
  let next = thrown
  while (next !== undefined && next !== null && chain.length < MAX_CAUSES) {
    chain.push(next)
    next = next instanceof Error ? next.cause : undefined
  }
  return chain
}

const codeOf = (thrown: unknown): string => readText(thrown, 'code')

/** A text field of an error; empty: it has none. */
function readText(thrown: unknown, field: 'code' | 'error' | 'error_description'): string {
  const value: unknown = thrown instanceof Error ? Reflect.get(thrown, field) : null
  return typeof value === 'string' ? value : ''
}

/** An error that the provider itself answered with (RFC 6749, 4.1.2.1 and 5.2). */
function readError(thrown: unknown): ProviderFailure | null {
  const error = readText(thrown, 'error')
  if (error === '') return null
  const more = readText(thrown, 'error_description')
  const words = printable(more === '' ? error : `${error} (${more})`).slice(0, MAX_WORDS)
  const failure = { why: ERRORS[error] ?? 'denied', detail: `it says ${words}` } as const
  if (codeOf(thrown) !== 'OAUTH_AUTHORIZATION_RESPONSE_ERROR') return failure
  const isKnown = error === 'access_denied' || Object.hasOwn(ERRORS, error)
  return { ...failure, noted: isKnown ? `it says ${error}` : 'it refused the login' }
}

/**
 * Whether the provider itself, asked with our name and secret, did not take them: so nobody can log in
 * with it. What a browser brings along, and may have made up, does not count.
 */
export const isClientUnknown = (thrown: unknown): boolean =>
  listCauses(thrown).some(
    (each) =>
      codeOf(each) === 'OAUTH_WWW_AUTHENTICATE_CHALLENGE' ||
      (codeOf(each) === 'OAUTH_RESPONSE_BODY_ERROR' && NOT_KNOWN.has(readText(each, 'error'))),
  )

const NOT_KNOWN: ReadonlySet<string> = new Set(['invalid_client', 'unauthorized_client'])

/** Codes of openid-client are no codes of the network. */
function readNetwork(thrown: unknown): ProviderFailure | null {
  const failure = /^(?:OAUTH_|ERR_INVALID)/.test(codeOf(thrown)) ? null : describeFailure(thrown)
  if (failure === null) return null
  return { why: failure.code === MISDIRECTED ? 'settings' : 'away', detail: failure.reason }
}

/** What a status says at an address that the settings lead to. */
const readStatus = (status: number): ProviderFailure | null =>
  status >= 200 && status <= 299
    ? null
    : {
        why: status >= 500 || status === 429 ? 'away' : 'settings',
        detail: `it answers with status ${status}`,
      }

// What an OpenID provider says of a person in two answers: the ID token, and what its userinfo address adds.

/** `iss` and `sub` are texts. */
export type ProviderClaims = Readonly<Record<string, unknown>> & {
  readonly iss: string
  readonly sub: string
}

/**
 * Joins the two; the ID token counts more. That an address is verified counts only beside the address
 * of the same answer: the other one may name another address, which anybody can set.
 */
export function joinClaims(
  token: ProviderClaims,
  userinfo: Readonly<Record<string, unknown>>,
): ProviderClaims {
  const { email_verified: _, ...joined } = { ...userinfo, ...token }
  const whole = [token, userinfo].find(
    (said) => Object.hasOwn(said, 'email') && Object.hasOwn(said, 'email_verified'),
  )
  if (whole === undefined) return joined
  return { ...joined, email: whole['email'], email_verified: whole['email_verified'] }
}

// Decides what an OpenID provider's address may be: https, or http on this host.

const MAX_CHARACTERS = 2048

/** Whether an address may name a provider. It is compared as it is written: no slash is added or taken away. */
export function isIssuer(address: string): boolean {
  const url = parse(address)
  return url !== null && url.search === '' && isSafe(url)
}

/** Whether two addresses name the same provider; that of a host alone may end in a slash or not. */
export const isSameIssuer = (one: string, other: string): boolean =>
  one === other || (URL.canParse(one) && new URL(one).href === URL.parse(other)?.href)

/**
 * Whether an address that a provider names is asked: it is on https, or on this host where the provider
 * itself is.
 */
export function isAskable(address: string, issuer: string): boolean {
  const [url, of] = [parse(address), parse(issuer)]
  if (url === null || of === null) return false
  return url.protocol === 'https:' || (isSafe(url) && of.protocol === 'http:' && isSafe(of))
}

function parse(address: string): URL | null {
  const url = address.length > MAX_CHARACTERS ? null : URL.parse(address)
  const isPlain = url !== null && url.username === '' && url.password === '' && url.hash === ''
  return isPlain && /^https?:\/\/[^\s\\#<>]+$/i.test(address) ? url : null
}

/** Nobody between the two reads along. */
const isSafe = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))

const isLoopback = (hostname: string): boolean =>
  /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname)
