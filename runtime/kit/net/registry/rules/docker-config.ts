/** Reads the credentials for a registry from a Docker configuration. */
import { z } from 'zod'
import { namesOfRegistry } from './oras.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'

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
