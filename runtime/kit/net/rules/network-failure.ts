/** Describes why a network request failed, without secrets, and decides when it is tried again. */
import {
  describeSystemError,
  Fault,
  type FaultOptions,
  hintOf,
  renderError,
} from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { printable } from '#kit/foundation/printable.ts'

/** Our own reasons beside the system's and Node's; their messages are shown as they are. */
export const STALLED = 'ERR_STALLED'
export const MISDIRECTED = 'ERR_MISDIRECTED'
export const TOO_LARGE = 'ERR_TOO_LARGE'
const OWN: ReadonlySet<string> = new Set([STALLED, MISDIRECTED, TOO_LARGE])

export const codedError = (code: string, message: string): Error =>
  Object.assign(new Error(message), { code })

export interface NetworkFailure {
  readonly code: string
  readonly reason: string
  readonly hint: string | undefined
  /** Trying again cannot help. */
  readonly isFinal: boolean
  /** The server ended the talk: what some do at a HEAD. */
  readonly isHangUp: boolean
}

const HANG_UPS: Readonly<Record<string, string>> = {
  ECONNRESET: 'connection closed by the server',
  EPIPE: 'connection closed by the server',
  ECONNABORTED: 'connection aborted',
}

/** Nobody was there to talk to: where there is a proxy, that is the one that was called. */
const UNREACHED: Readonly<Record<string, string>> = {
  EAI_AGAIN: 'the name server does not answer',
  ECONNREFUSED: 'connection refused',
  EHOSTUNREACH: 'no route to that host',
  ENETDOWN: 'the network is down',
  ENETUNREACH: 'no route to that network',
  ENOTFOUND: 'host name not found',
  ETIMEDOUT: 'connection timed out',
}

const REASONS: Readonly<Record<string, string>> = { ...HANG_UPS, ...UNREACHED }

/** A server that speaks plain http to a client that speaks TLS ends in one of these. */
export const NO_TLS: ReadonlySet<string> = new Set([
  'EPROTO',
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
])

const CERTIFICATES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host name',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate was issued by an unknown authority',
  UNABLE_TO_GET_ISSUER_CERT: 'the certificate was issued by an unknown authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate was issued by an unknown authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate was issued by an unknown authority',
}

const CLOCK = 'Check the clock of this machine.'
const HINTS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: CLOCK,
  CERT_NOT_YET_VALID: CLOCK,
}
const OWN_AUTHORITY = 'Set FLASHER_CA_FILE to a PEM file of further authorities to trust.'

/**
 * Puts a network error into words. Null: it is a Fault, or a mistake of ours. What others put into
 * their messages is never passed on.
 */
export function describeFailure(thrown: unknown): NetworkFailure | null {
  if (!(thrown instanceof Error) || thrown instanceof Fault) return null
  const code = 'code' in thrown ? thrown.code : null
  if (typeof code !== 'string') return null
  return {
    code,
    ...wordsOf(code, thrown),
    isFinal: code in CERTIFICATES || code === MISDIRECTED || code === TOO_LARGE,
    isHangUp: code in HANG_UPS || code.startsWith('HPE_'),
  }
}

function wordsOf(code: string, thrown: Error): Pick<NetworkFailure, 'reason' | 'hint'> {
  const reason = reasonOf(code, thrown)
  if (!(code in UNREACHED) || !('proxy' in thrown)) return { reason, hint: findHint(code) }
  return { reason: `the proxy ${String(thrown.proxy)} cannot be reached: ${reason}`, hint: PROXIES }
}

const findHint = (code: string): string | undefined =>
  HINTS[code] ?? (code in CERTIFICATES ? OWN_AUTHORITY : undefined)

const PROXIES =
  'Check http_proxy and https_proxy; no_proxy lists the hosts that are asked without a proxy.'

function reasonOf(code: string, thrown: Error): string {
  if (OWN.has(code)) return thrown.message
  if (NO_TLS.has(code)) return 'the server does not speak TLS'
  if (code.startsWith('HPE_')) return 'the server does not speak HTTP'
  if (code === 'ERR_PROXY_TUNNEL') {
    const status = 'statusCode' in thrown ? ` (HTTP ${Number(thrown.statusCode)})` : ''
    return `the proxy refused${status}`
  }
  return REASONS[code] ?? CERTIFICATES[code] ?? `network error ${code}`
}

export const readingCancelled = (name: string): Fault =>
  new Fault('cancelled', `reading ${name} was cancelled`)

/** Makes the Fault `input-missing`; `reason` is `HTTP 404`, or what the network said, in words. */
export const notReachable = (name: string, reason: string, options?: FaultOptions): Fault =>
  new Fault('input-missing', `image URL not reachable: ${name} (${reason})`, options)

/** Makes the Fault `image-broken`: the bytes themselves are wrong, whatever they were read from. */
export const imageBroken = (message: string, cause?: unknown): Fault =>
  new Fault('image-broken', message, {
    cause,
    hint: 'Download or copy the image again and compare its checksum.',
  })

interface ReadPosition {
  readonly name: string
  /** The first byte that was not read. */
  readonly at: number
  readonly sizeBytes: number | null
}

/** A Fault `source-broken`. `reason` stands between the name and the place. */
export function brokenAt(position: ReadPosition, reason: string, options?: FaultOptions): Fault {
  const { name, at, sizeBytes } = position
  const of = sizeBytes === null ? '' : ` of ${sizeBytes}`
  return new Fault('source-broken', `${name}: ${reason} at byte ${at}${of}`, options)
}

// Reads why one of our servers refused a request from its response: `{"detail": …}`.

const MAX_CHARACTERS = 1000

/** A text, or a list of fields with what is wrong with each; null where the body says nothing. */
export function parseDetail(body: string): string | null {
  const detail = fieldOf(parseJson(body), 'detail')
  const words = Array.isArray(detail) ? detail.map(renderField).join('; ') : detail
  return typeof words === 'string' ? printable(words.trim().slice(0, MAX_CHARACTERS)) || null : null
}

/** Renders `HTTP 404: no machine record for …`; the status alone where the body says nothing. */
export const renderRefusal = (status: number, body: string): string =>
  [`HTTP ${status}`, parseDetail(body)].filter((part) => part !== null).join(': ')

/** `loc` begins with the part of the request that the field is in. */
function renderField(field: unknown): string {
  const [loc, msg] = [fieldOf(field, 'loc'), fieldOf(field, 'msg')]
  const path = Array.isArray(loc) ? loc.slice(1).join('.') : ''
  return [path, typeof msg === 'string' ? msg : 'invalid'].filter(Boolean).join(': ')
}

const fieldOf = (document: unknown, name: string): unknown =>
  isRecord(document) ? document[name] : undefined

/** Explains why a server cannot listen, and where its address is set. */
interface FailedAddress {
  readonly host: string
  readonly port: number
  /** How another address is chosen, as a sentence. */
  readonly settingHint: string
}

export function explainListening(
  cause: unknown,
  { host, port, settingHint }: FailedAddress,
): Fault {
  const where = describeSystemError(cause) === null ? ` on ${host} port ${port}` : ''
  return new Fault('busy', `cannot listen${where}: ${renderError(cause)}`, {
    cause,
    hint: [hintOf(cause), settingHint].filter(Boolean).join(' '),
  })
}

/** Tries in a row that bring not one byte. */
export const TRIES_WITHOUT_PROGRESS = 5
/** A hasty reader has another server to ask. */
export const countTries = (isHasty: boolean): number => (isHasty ? 1 : TRIES_WITHOUT_PROGRESS)

const LONGEST_WAIT_MS = 15_000
/** A server may ask for a longer wait than ours, up to this. */
const LONGEST_OBEYED_MS = 60_000

/**
 * Returns the milliseconds before try number `tries` (1 is the first repeat): doubling, and spread
 * by `random` (0 to 1), so that a rack of machines does not come back at one moment.
 */
export function decideDelay(tries: number, firstMs: number, random: number): number {
  const full = Math.min(LONGEST_WAIT_MS, firstMs * 2 ** (tries - 1))
  return Math.round(full * (0.5 + random / 2))
}

/**
 * Parses a `Retry-After` header into milliseconds from now, bounded; null: none. `untilDateMs` is
 * how far away it is where it is a date (NaN: it is none).
 */
export function parseRetryAfter(
  text: string | undefined,
  untilDateMs: number,
  mostMs = LONGEST_OBEYED_MS,
): number | null {
  if (text === undefined) return null
  const wait = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : untilDateMs
  return Number.isNaN(wait) ? null : Math.min(mostMs, Math.max(0, wait))
}
