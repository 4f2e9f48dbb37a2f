/**
 * What somebody typed into a form whose session had ended: it travels sealed in the login page, and after
 * the login the form is shown with it again, to the same person. Nothing of it is kept here.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import type { H3Event } from 'h3'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { peerOf, type CallerPerson } from '../answers/caller.ts'
import { TypedFormSchema, type TypedForm } from '../ui/typed-page.ts'
import { localPath } from '../answers/checked.ts'
import type { Secret } from './secret.ts'

/** How long a sealed form is shown again, in seconds. */
const MAX_AGE = 24 * 3600
/**
 * Names who was logged in last: the session's own cookie is gone by then. Browsers know no ports, so each
 * server of a host has a name of its own.
 */
const COOKIE = 'flasher-who-'
const COOKIE_SECONDS = 365 * 24 * 3600
/** Not a person's id. */
const ADMINISTRATOR = '-'
/** Names of fields whose texts are secrets; a password field is never shown again, whatever its name. */
const SECRET =
  /password|passphrase|secret|private|(^|[._-])token$|^(current|repeated)$|driver_options/i
const isSecret = ([name]: readonly [string, string]) => SECRET.test(name)

export type TypedForms = ReturnType<typeof createTypedForms>

interface TypedFormsDependencies {
  readonly secret: Secret
  readonly now: () => Date
}

/** `secret` is the key of sessions. */
export function createTypedForms({ secret, now }: TypedFormsDependencies) {
  const key = () => createHash('sha256').update(secret.sign('key of typed forms')).digest()
  const sign = (who: string) => secret.sign(`who:${who}`)
  const nameOf = () => `${COOKIE}${secret.sign('name of who').slice(0, 8)}`

  return {
    /** A `Set-Cookie` value. */
    remember(person: CallerPerson | null, isSecure: boolean): string {
      const who = person?.id ?? ADMINISTRATOR
      const value = `${Buffer.from(who).toString('base64url')}.${sign(who)}`
      const secure = isSecure ? '; Secure' : ''
      return `${nameOf()}=${value}; Path=/; Max-Age=${COOKIE_SECONDS}; HttpOnly; SameSite=Strict${secure}`
    },
    /** Who was logged in here last; null: nobody that this server knows. */
    recall({ req }: Pick<H3Event, 'req'>): string | null {
      const cookies = (req.headers.get('cookie') ?? '').split(/; */, 64)
      const name = `${nameOf()}=`
      const values = cookies.filter((pair) => pair.startsWith(name))
      for (const pair of values) {
        const [text = '', signature = ''] = pair.slice(name.length).split('.')
        const who = Buffer.from(text, 'base64url').toString('utf8')
        if (secret.verify(`who:${who}`, signature)) return who
      }
      return null
    },
    /** For the login page. `who` is what `recall` returned. */
    seal(event: H3Event, who: string, form: URLSearchParams): string {
      const all = [...form]
      const typed: TypedForm = {
        at: now().getTime(),
        who,
        action: `${event.url.pathname}${event.url.search}`,
        page: pageOf(event),
        fields: all.filter((field) => !isSecret(field)),
        lost: all.filter((field) => isSecret(field) && field[1] !== '').map(([name]) => name),
      }
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key(), iv)
      const sealed = [cipher.update(JSON.stringify(typed), 'utf8'), cipher.final()]
      return Buffer.concat([iv, cipher.getAuthTag(), ...sealed]).toString('base64url')
    },
    /** Null: it is not ours, too old, or was typed by somebody else. */
    open(sealed: string, person: CallerPerson | null): TypedForm | null {
      const typed = unseal(sealed, key())
      if (typed === null || typed.who !== (person?.id ?? ADMINISTRATOR)) return null
      const age = (now().getTime() - typed.at) / 1000
      return age > MAX_AGE ? null : typed
    },
  }
}

function unseal(sealed: string, key: Buffer): TypedForm | null {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < 28) return null
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
  decipher.setAuthTag(bytes.subarray(12, 28))
  try {
    const text = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()])
    return TypedFormSchema.parse(parseJson(text.toString('utf8')))
  } catch {
    return null
  }
}

/** The page that a form was sent from, as the browser says. */
export function pageOf(event: H3Event): string | null {
  const { req, url } = event
  const from = URL.parse(req.headers.get('referer') ?? '')
  if (from === null || ![url.host, ...peerOf(event).ownHosts].includes(from.host)) return null
  const path = localPath(`${from.pathname}${from.search}`, '')
  return path === '' || path.startsWith('/ui/login') ? null : path
}
