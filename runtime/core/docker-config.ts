/** The credentials that a Docker configuration holds for a registry. */
import { z } from 'zod'

export interface Credentials {
  readonly user: string
  readonly password: string
}

const Text = z.string().max(65_536).catch('')
const Entry = z.object({ auth: Text, username: Text, password: Text })
const Config = z.object({ auths: z.record(z.string(), z.unknown()) })

/**
 * `text`: the content of a config.json; `host`: with its port where it has one. Null: none there,
 * which is also what is said of anything that is no such file, and of credential helpers.
 */
export function findCredentials(text: string, host: string): Credentials | null {
  const config = Config.safeParse(parseJson(text))
  if (!config.success) return null
  const key = Object.keys(config.data.auths).find((name) => hostOf(name) === host)
  const entry = Entry.safeParse(key === undefined ? null : config.data.auths[key])
  if (!entry.success) return null
  const { auth, username, password } = entry.data
  return auth === '' ? pairOf(username, password) : decodeAuth(auth)
}

export const renderBasic = ({ user, password }: Credentials): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

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

const pairOf = (user: string, password: string): Credentials | null =>
  user === '' ? null : { user, password }

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
