/** Reads the credentials for a registry from a Docker configuration, and what a registry answers to an upload. */
import { z } from 'zod'
import { namesOfRegistry } from './oras.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isRecord } from '#kit/foundation/shape.ts'

export interface Credentials {
  readonly user: string
  readonly password: string
  /** What the registry's token server takes in place of both (OAuth 2); absent: there is none. */
  readonly identityToken?: string
}

const Text = z.string().max(65_536).catch('')
const Entry = z.object({ auth: Text, username: Text, password: Text, identitytoken: Text })
const Names = z.record(z.string(), z.unknown()).catch({})
const Config = z.object({ auths: Names, credHelpers: Names, credsStore: Text })
/** What `docker-credential-…` answers; with `<token>` for a user, the secret is an identity token. */
const Answer = z.object({ Username: Text, Secret: Text })

/** `host` has its port where there is one. Null: none are there, or the text is no such file. */
export function findCredentials(text: string, host: string): Credentials | null {
  const config = Config.safeParse(parseJson(text))
  const entry = Entry.safeParse(findByHost(config.data?.auths ?? {}, host, null))
  if (!entry.success) return null
  const { auth, username, password, identitytoken } = entry.data
  if (identitytoken !== '') return identityOf(identitytoken)
  return auth === '' ? pairOf(username, password) : decodeAuth(auth)
}

/** The `…` of `docker-credential-…`; null: none is named. */
export function findHelper(text: string, host: string): string | null {
  const config = Config.safeParse(parseJson(text))
  if (!config.success) return null
  const { credHelpers, credsStore } = config.data
  const name = findByHost(credHelpers, host, credsStore)
  return typeof name === 'string' && /^[a-z0-9][a-z0-9._-]{0,63}$/i.test(name) ? name : null
}

/** Parses what such a program gave for `get`; null: nothing that is a user and a password. */
export function parseHelperAnswer(text: string): Credentials | null {
  const answer = Answer.safeParse(parseJson(text))
  if (!answer.success) return null
  const { Username: user, Secret: secret } = answer.data
  return user === '<token>' && secret !== '' ? identityOf(secret) : pairOf(user, secret)
}

export const renderBasic = ({ user, password }: Credentials): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

function findByHost(names: Readonly<Record<string, unknown>>, host: string, otherwise: unknown) {
  const entries = Object.entries(names)
  const found = namesOfRegistry(host)
    .map((known) => entries.find(([name]) => hostOf(name) === known))
    .find((entry) => entry !== undefined)
  return found === undefined ? otherwise : found[1]
}

/** Keys are hosts, or addresses as old clients wrote them: `https://host/v1/`. */
const hostOf = (key: string) =>
  key
    .replace(/^https?:\/\//i, '')
    .replace(/\/.*$/s, '')
    .toLowerCase()

function decodeAuth(auth: string): Credentials | null {
  const pair = Buffer.from(auth, 'base64').toString('utf8').replace(/\0+$/, '')
  const colon = pair.indexOf(':')
  return colon < 1 ? null : pairOf(pair.slice(0, colon), pair.slice(colon + 1))
}

const identityOf = (identityToken: string): Credentials => ({
  user: '',
  password: '',
  identityToken,
})

const pairOf = (user: string, password: string): Credentials | null =>
  user === '' ? null : { user, password }

// Parses the challenges of a 401: `WWW-Authenticate` (RFC 9110, 11.6.1).

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

/** In order; reading ends at what is no challenge, and after 8192 characters. */
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

/** Perhaps elsewhere, but never in plain text where the registry speaks TLS. Refused in words. */
export function parseUploadUrl(from: string, location: string | undefined): Result<string, string> {
  const next = location === undefined ? null : URL.parse(location, from)
  if (next === null) return refuse('its answer has no address for the rest of the upload')
  if (next.protocol !== 'https:' && next.protocol !== 'http:') {
    return refuse(`it redirects the upload to ${next.protocol}//, which is neither http nor https`)
  }
  if (next.protocol === 'http:' && from.startsWith('https:')) {
    return refuse('it redirects the upload from https to http')
  }
  next.username = ''
  next.password = ''
  next.hash = ''
  return accept(next.href)
}

export function completionUrl(upload: string, digest: string): string {
  const url = new URL(upload)
  url.searchParams.set('digest', digest)
  return url.href
}

/**
 * Of `0-499`, the number of bytes that have arrived; null: it says nothing. `0-0` means none, as
 * the widespread registry has it: chunks are never one byte long.
 */
export function parseArrived(range: string | undefined): number | null {
  const last = /^(?:bytes=)?0-(\d{1,15})$/.exec(range?.trim() ?? '')?.[1]
  if (last === undefined) return null
  return last === '0' ? 0 : Number(last) + 1
}

const MAX_CHUNK_BYTES = 64 * 1024 * 1024

/** Decides the bytes of a chunk: `ours`, or more where the registry wants more, up to 64 MiB. */
export function decideChunkBytes(ours: number, least: string | undefined): number {
  const wanted = /^\d{1,12}$/.test(least ?? '') ? Number(least) : 0
  return Math.min(MAX_CHUNK_BYTES, Math.max(ours, wanted))
}

export const MAX_REASON_BYTES = 64 * 1024
const MAX_CHARACTERS = 300

interface RegistryError {
  /** `DENIED`, `BLOB_UNKNOWN`…; empty: it says none. */
  readonly code: string
  readonly message: string
}

/** Parses the first error of an answer; both texts are empty where there is none. */
export function parseRegistryError(text: string): RegistryError {
  const document = parseJson(text)
  const errors = isRecord(document) ? document['errors'] : undefined
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined
  if (!isRecord(first)) return { code: '', message: '' }
  return { code: wordsOf(first['code']), message: wordsOf(first['message']) }
}

/** Renders `HTTP 403: denied (DENIED)`; the status alone where the answer says nothing. */
export function renderRegistryError(status: number, text: string): string {
  const { code, message } = parseRegistryError(text)
  const words = [message, message === '' ? code : code && `(${code})`].filter(Boolean).join(' ')
  return words === '' ? `HTTP ${status}` : `HTTP ${status}: ${words}`
}

const wordsOf = (text: unknown): string =>
  typeof text === 'string' ? printable(text.trim().slice(0, MAX_CHARACTERS)) : ''
