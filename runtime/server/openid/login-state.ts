/** The cookie of the logins that are under way at a provider, one a tab: where each goes on afterwards, signed by the key of sessions. */
import { randomBytes } from 'node:crypto'
import type { H3Event } from 'h3'
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { deriveSecret, type Secret } from '#kit/web/access/secret.ts'

const NAME = 'flasher-openid'
/** For the time at the provider. */
const MAX_SECONDS = 600
/** How far the clock of another server may be ahead. */
const AHEAD_SECONDS = 60
const MAX_CHARACTERS = 3072
/** A browser may hold cookies of this name for several paths. */
const MAX_COOKIES = 3
/** Between the logins of several tabs, newest first. */
const SEPARATOR = '~'
/** Only pages of the login get the cookie. */
const PATH = '/ui/login'

const Claims = z.object({ state: z.string(), next: z.string(), iat: z.number() })

export interface LoginState {
  readonly state: string
  /** A local path. */
  readonly next: string
  readonly nonce: string
  /** PKCE's secret. */
  readonly verifier: string
}

export type LoginStates = ReturnType<typeof createLoginStates>

/** All secrets derive from the key, so another server with it can finish a login. */
export function createLoginStates({ secret: master, now }: { secret: Secret; now(): Date }) {
  const secret = deriveSecret(master, 'logins with a provider')
  const present = () => Math.floor(now().getTime() / 1000)
  const complete = (state: string, next: string): LoginState => ({
    state,
    next,
    nonce: secret.sign(`nonce:${state}`),
    verifier: secret.sign(`verifier:${state}`),
  })

  function parse(value: string): LoginState | null {
    const [body = '', signature = '', ...rest] = value.split('.')
    if (rest.length > 0 || !secret.verify(`login:${body}`, signature)) return null
    const text = Buffer.from(body, 'base64url').toString('utf8')
    const claims = Claims.safeParse(parseJson(text)).data
    const age = claims === undefined ? Number.NaN : present() - claims.iat
    const isInTime = age >= -AHEAD_SECONDS && age < MAX_SECONDS
    return claims === undefined || !isInTime ? null : complete(claims.state, claims.next)
  }

  const listOpen = (event: H3Event) =>
    listValues(event.req.headers.get('cookie')).flatMap((value) => {
      const login = parse(value)
      return login === null ? [] : [{ value, login }]
    })

  return {
    /** `cookie` is a `Set-Cookie` value with the logins of other tabs, too. */
    begin(
      event: H3Event,
      next: string,
      isSecure: boolean,
    ): LoginState & { readonly cookie: string } {
      const state = randomBytes(18).toString('base64url')
      const text = JSON.stringify({ state, next, iat: present() })
      const body = Buffer.from(text).toString('base64url')
      const value = `${body}.${secret.sign(`login:${body}`)}`
      const others = listOpen(event).map((open) => open.value)
      return { ...complete(state, next), cookie: renderLogins([value, ...others], isSecure) }
    },
    /** Null: no login with that state in this browser, or too long ago. */
    read(event: H3Event, state: string | null): LoginState | null {
      return listOpen(event).find(({ login }) => login.state === state)?.login ?? null
    },
    /** A `Set-Cookie` value. A login counts once; those of other tabs stay. */
    end(event: H3Event, state: string, isSecure: boolean): string {
      const others = listOpen(event).filter(({ login }) => login.state !== state)
      return renderLogins(
        others.map(({ value }) => value),
        isSecure,
      )
    },
  }
}

/** As many as the cookie can hold. */
function renderLogins(values: readonly string[], isSecure: boolean): string {
  const size = MAX_CHARACTERS - NAME.length - 1
  const fits = (_: string, at: number) => values.slice(0, at + 1).join(SEPARATOR).length <= size
  const kept = values.filter(fits)
  return renderCookie(kept.join(SEPARATOR), kept.length === 0 ? 0 : MAX_SECONDS, isSecure)
}

const listValues = (header: string | null): readonly string[] =>
  (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`) && pair.length <= MAX_CHARACTERS)
    .slice(0, MAX_COOKIES)
    .flatMap((pair) => pair.slice(NAME.length + 1).split(SEPARATOR))

/** Not Strict: the provider sends the browser back, and a Strict cookie would not come along. */
const renderCookie = (value: string, seconds: number, isSecure: boolean): string =>
  `${NAME}=${value}; Path=${PATH}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
