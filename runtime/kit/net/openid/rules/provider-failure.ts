/** Says in words why a login with an OpenID provider failed, and whose fault that is. */
import { Fault } from '../../../foundation/fault.ts'
import { printable } from '../../../foundation/printable.ts'
import { describeFailure, MISDIRECTED } from '../../rules/network-failure.ts'

export interface ProviderFailure {
  /**
   * `away`: the provider does not answer. `settings`: it is not what the settings say, or does not know
   * us. `denied`: it let nobody in. `spent`: it takes the answer no more. `doubtful`: what it said of the
   * person does not pass its checks.
   */
  readonly why: 'away' | 'settings' | 'denied' | 'spent' | 'doubtful'
  /** What was wrong, as a clause. */
  readonly detail: string
}

/** The provider's own words are of any length. */
const MAX_WORDS = 200
/** Causes of causes; nothing of ours has as many. */
const MAX_CAUSES = 5

const ANSWERS: Readonly<Record<string, Omit<ProviderFailure, 'detail'> & { says: string }>> = {
  OAUTH_TIMEOUT: { why: 'away', says: 'it does not answer in time' },
  OAUTH_ABORT: { why: 'away', says: 'it does not answer in time' },
  OAUTH_RESPONSE_IS_NOT_JSON: { why: 'away', says: 'its answer is no JSON' },
  OAUTH_PARSE_ERROR: { why: 'away', says: 'its answer cannot be read' },
  OAUTH_INVALID_RESPONSE: { why: 'doubtful', says: 'its answer lacks a part' },
  OAUTH_HTTP_REQUEST_FORBIDDEN: { why: 'settings', says: 'it names an address without TLS' },
  OAUTH_REQUEST_PROTOCOL_FORBIDDEN: { why: 'settings', says: 'it names an unusable address' },
  OAUTH_MISSING_SERVER_METADATA: {
    why: 'settings',
    says: 'its discovery document lacks an address',
  },
  OAUTH_INVALID_SERVER_METADATA: {
    why: 'settings',
    says: 'its discovery document has a bad address',
  },
  OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED: {
    why: 'settings',
    says: 'it calls itself another issuer',
  },
  OAUTH_KEY_SELECTION_FAILED: {
    why: 'doubtful',
    says: 'it signed with a key that it does not publish',
  },
  OAUTH_JWT_CLAIM_COMPARISON_FAILED: {
    why: 'doubtful',
    says: 'its ID token is of another login, client or issuer',
  },
  OAUTH_JWT_TIMESTAMP_CHECK_FAILED: {
    why: 'doubtful',
    says: 'its ID token is not valid at this time',
  },
  OAUTH_UNSUPPORTED_OPERATION: { why: 'settings', says: 'it signs in a way that is not supported' },
}

/** Errors of the token endpoint and of the callback that name a setting rather than the person. */
const SETTINGS: ReadonlySet<string> = new Set([
  'invalid_client',
  'unauthorized_client',
  'unsupported_grant_type',
  'unsupported_response_type',
  'invalid_scope',
  'invalid_request',
  'invalid_target',
])

/**
 * Describes what openid-client or a request of its threw. `skew`: how many seconds the provider's clock is
 * ahead of ours, as it last said; null: it did not say.
 */
export function describeProviderFailure(thrown: unknown, skew: number | null): ProviderFailure {
  const chain = listCauses(thrown)
  const said = chain.map(readAnswer).find((each) => each !== null)
  if (said !== undefined && said !== null) return said
  const network = chain.map(describeFailure).find((each) => each !== null && isNetwork(each.code))
  if (network !== undefined && network !== null) {
    return { why: network.code === MISDIRECTED ? 'settings' : 'away', detail: network.reason }
  }
  const fault = chain.find((each) => each instanceof Fault)
  if (fault !== undefined) return { why: 'settings', detail: fault.message }
  const status = chain.find((each) => each instanceof Response)?.status ?? null
  if (status !== null && (status < 200 || status > 299)) return describeStatus(status)
  const known = chain.map(codeOf).find((code) => Object.hasOwn(ANSWERS, code)) ?? ''
  const answered = ANSWERS[known]
  if (answered === undefined)
    return { why: 'doubtful', detail: 'its answer is none of OpenID Connect' }
  const { why, says } = answered
  const isLate =
    known === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED' && skew !== null && Math.abs(skew) > 30
  return { why, detail: isLate ? `${says}: ${describeSkew(skew)}` : says }
}

/** What a status says at an address that the settings lead to. */
const describeStatus = (status: number): ProviderFailure => ({
  why: status >= 500 || status === 429 ? 'away' : 'settings',
  detail: `it answers with status ${status}`,
})

const describeSkew = (seconds: number): string =>
  `its clock is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} the one of this server`

/** Codes of openid-client are no codes of the network. */
const isNetwork = (code: string): boolean =>
  !code.startsWith('OAUTH_') && !code.startsWith('ERR_INVALID')

function listCauses(thrown: unknown): readonly unknown[] {
  const chain: unknown[] = []
  let next = thrown
  while (next !== undefined && next !== null && chain.length < MAX_CAUSES) {
    chain.push(next)
    next = next instanceof Error ? next.cause : undefined
  }
  return chain
}

const codeOf = (thrown: unknown): string =>
  thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : ''

/** An error that the provider itself answered with (RFC 6749, 4.1.2.1 and 5.2); null: it is none. */
function readAnswer(thrown: unknown): ProviderFailure | null {
  if (!(thrown instanceof Error) || !('error' in thrown)) return null
  const { error } = thrown
  if (typeof error !== 'string') return null
  const more = 'error_description' in thrown ? thrown.error_description : null
  const words = typeof more === 'string' && more !== '' ? `${error} (${more})` : error
  const detail = `it says ${printable(words).slice(0, MAX_WORDS)}`
  if (error === 'invalid_grant') return { why: 'spent', detail }
  if (error === 'server_error' || error === 'temporarily_unavailable')
    return { why: 'away', detail }
  return { why: SETTINGS.has(error) ? 'settings' : 'denied', detail }
}
