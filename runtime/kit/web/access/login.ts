/** Logging in and out, as the administrator or with a name: a delay that grows with each wrong password, a record of each. */
import type { H3, H3Event } from 'h3'
import { addCookie, type Answer, page, seeOther } from '../answers/answers.ts'
import {
  type RecordEvents,
  callerOf,
  peerOf,
  personOf,
  type By,
  type CallerPerson,
} from '../answers/caller.ts'
import type { LoginView, ProviderView } from '../ui/site-views.ts'
import { localPath } from '../answers/checked.ts'
import type { CheckPassword } from './password-check.ts'
import type { Route } from '../answers/route.ts'
import { LIMITS } from '../answers/limits.ts'
import type { Sessions } from './session.ts'
import { fill } from '#kit/foundation/text.ts'
import { fillPage, type TypedForm } from '../ui/typed-page.ts'
import { pageOf, type TypedForms } from './typed-forms.ts'
const HOME = '/ui/dashboard'

export interface NamedLogins {
  /** Whether anybody has a password of their own; a name that comes along means nothing until then. */
  isUsed(): boolean
  /** Whether the login without a name is there beside them. */
  allowsNameless(): boolean
  find(name: string): CallerPerson | null
  /** Null: nobody has that name; no password is right then, and the check takes as long. */
  checkPassword(person: CallerPerson | null, given: string): Promise<boolean>
  storeLogin(person: CallerPerson): Promise<void>
}

export interface ProviderLogins {
  /** What the login page shows of it; null: none is set. */
  describe(next: string): ProviderView | null
  /** Where somebody goes who has logged out, if they came from there; null: to the login page. */
  leave(event: H3Event, person: CallerPerson): Answer | null
}

interface LoginDependencies {
  readonly sessions: Sessions
  readonly views: { renderLogin(view: LoginView): string; renderTyped(form: TypedForm): string }
  readonly check: CheckPassword
  readonly recordAll: RecordEvents
  /** Absent: there is the administrator alone. */
  readonly named?: NamedLogins | undefined
  /** Absent: nobody else says who somebody is. */
  readonly providers?: ProviderLogins | undefined
  readonly typed: TypedForms
  /** The program's own, which is asked for the page of a form. */
  app(): H3
  onEnd?(): void
  /** Once a session was ended, with its cookie (`name=value`). */
  onLogout?(cookie: string): Promise<void>
}

/** What a form meets whose session has ended. */
export interface Relogin {
  /** Whether somebody was logged in here with this browser. */
  wasLoggedIn(event: H3Event): boolean
  /** `form` null: nothing was typed; `lost`: it cannot be kept. */
  askAgain(event: H3Event, form: URLSearchParams | 'lost' | null): Answer
}

/** `site` is that of `loginRoutes`. */
export function createRelogin(site: LoginDependencies): Relogin {
  const { typed } = site
  const show = createShow(site)
  return {
    wasLoggedIn: (event) => typed.recall(event) !== null,
    askAgain(event, form) {
      const who = typed.recall(event)
      const isKept = who !== null && form instanceof URLSearchParams
      const ended = isKept ? typed.seal(event, who, form) : ''
      const error = form === 'lost' ? 'What you typed could not be kept.' : null
      return show({ error, next: pageOf(event) ?? HOME, name: '', ended }, 401, {
        'set-cookie': renderCheck(peerOf(event).isSecure),
        'cache-control': 'no-store',
      })
    },
  }
}

/** Those of logging in and out, of its page, and of the addresses that lead to the start page. */
export function loginRoutes(site: LoginDependencies): readonly Route[] {
  const { sessions } = site
  const show = createShow(site)
  return [
    { method: 'GET', path: '/', access: 'open', handle: () => seeOther(HOME) },
    { method: 'GET', path: '/ui', access: 'open', handle: () => seeOther(HOME) },
    {
      method: 'GET',
      path: '/ui/login',
      access: 'open',
      isCompressed: true,
      handle(event) {
        const next = nextOf(event.url.searchParams.get('next'))
        if (sessions.read(event) !== null) return seeOther(next)
        const cookie = renderCheck(peerOf(event).isSecure)
        const headers = { 'set-cookie': cookie, 'cache-control': 'no-store' }
        return show({ error: null, next, name: '' }, 200, headers)
      },
    },
    {
      method: 'POST',
      path: '/ui/login',
      access: 'open',
      takes: 'form',
      // With what was typed elsewhere, sealed and encoded.
      most: 4 * LIMITS.form,
      handle: createLogIn(site),
    },
    {
      method: 'POST',
      path: '/ui/logout',
      access: { page: 'own' },
      reach: 'shared',
      handle: createLogOut(site),
    },
  ]
}

const createShow =
  ({ views, named, providers }: LoginDependencies) =>
  (view: Omit<LoginView, 'names' | 'provider'>, status: number, headers = {}) => {
    const provider = providers?.describe(view.next) ?? null
    const names = describeNames(named, provider !== null)
    return page(views.renderLogin({ ...view, names, provider }), status, headers)
  }

/** Shows the login page because of what a provider did; `site` is that of `loginRoutes`. */
export const showProviderError =
  ({ views, named, providers }: Pick<LoginDependencies, 'views' | 'named' | 'providers'>) =>
  (event: H3Event, next: string, error: string, status: number): Answer => {
    const provider = providers?.describe(next) ?? null
    const view = { error: null, next, name: '', names: describeNames(named, provider !== null) }
    addCookie(event, renderCheck(peerOf(event).isSecure))
    const shown = provider === null ? null : { ...provider, error }
    return page(views.renderLogin({ ...view, provider: shown }), status, {
      'cache-control': 'no-store',
    })
  }

function createLogIn(site: LoginDependencies) {
  const { sessions, named } = site
  const show = createShow(site)

  /** What is refused before a password is checked; null: nothing. */
  function refuseEarly(event: H3Event, form: URLSearchParams, name: string) {
    if ((form.get('password') ?? '') === '') return { error: 'Enter the password.', status: 401 }
    if (hasLostCookies(event, form)) {
      const headers = { 'set-cookie': renderCheck(peerOf(event).isSecure) }
      return {
        error:
          'Your browser did not accept a cookie. Allow cookies for this address, then log in again.',
        status: 400,
        headers,
      }
    }
    if (name !== '' || named?.allowsNameless() !== false) return null
    return {
      error: named.isUsed()
        ? 'Enter your name.'
        : 'Passwords are not accepted here. Log in with the provider.',
      status: 401,
    }
  }

  async function check(event: H3Event, given: string, name: string) {
    const { ip, isSecure } = peerOf(event)
    const person = name === '' ? null : (named?.find(name) ?? null)
    // Made before the check: a password that is changed meanwhile ends it with all others.
    const cookie = sessions.issue(event, isSecure, person)
    const isRight = (text: string) => checkNamed(named, person, text)
    const checked = name === '' ? undefined : { id: person?.id ?? null, isRight }
    return { person, cookie, checked: await site.check(given, ip, checked) }
  }

  /** The session is the one of the cookie. */
  async function enter(event: H3Event, next: string, returned: Returned): Promise<Answer> {
    const { person, cookie } = returned
    const by = renderPerson(person)
    if (person !== null) await named?.storeLogin(person)
    await record(site, event, { ...by, kind: 'auth.login.succeeded', what: 'logged in' })
    addCookie(event, cookie)
    addCookie(event, site.typed.remember(person, peerOf(event).isSecure))
    return (await showTyped(site, event, returned)) ?? seeOther(next)
  }

  /** Null: nobody has logged in elsewhere, such as in another tab with a provider. */
  async function goOn(event: H3Event, next: string, ended: string | undefined) {
    const session = ended === undefined ? null : sessions.read(event)
    if (session === null) return null
    const cookie = sessions.renderCookie(session.id, session.person)
    return (await showTyped(site, event, { ...session, ended, cookie })) ?? seeOther(next)
  }

  return async (event: H3Event, form: URLSearchParams): Promise<Answer> => {
    const shown = readShown(form)
    const { next, ended } = shown
    const name = readName(form, named)
    const entered = form.has('password') ? null : await goOn(event, next, ended)
    if (entered !== null) return entered
    const refused = refuseEarly(event, form, name)
    if (refused !== null) {
      return show({ ...shown, error: refused.error }, refused.status, refused.headers)
    }
    const { person, cookie, checked } = await check(event, form.get('password') ?? '', name)
    if (checked.kind === 'wait') {
      const headers = { 'retry-after': String(checked.seconds) }
      const error = fill('Too many attempts: try again in {seconds} s.', checked)
      return show({ ...shown, error }, 429, headers)
    }
    if (checked.kind === 'right') return await enter(event, next, { person, ended, cookie })
    if (checked.isNoted) await recordFailure(site, event, name, person)
    const error = name === '' ? 'Wrong password.' : 'Wrong name or password.'
    return show({ ...shown, error }, 401)
  }
}

interface Returned {
  readonly person: CallerPerson | null
  /** What was typed, sealed. */
  readonly ended: string | undefined
  /** The session; attributes of a cookie may follow. */
  readonly cookie: string
}

/** Shows the form as it was typed; null: there is none, or it was somebody else's. It is never sent by itself. */
async function showTyped(
  { typed, views, app }: LoginDependencies,
  event: H3Event,
  { person, ended = '', cookie }: Returned,
): Promise<Answer | null> {
  const form = ended === '' ? null : typed.open(ended, person)
  if (form === null) return null
  const [session = ''] = cookie.split(';')
  const headers = { 'cache-control': 'no-store' }
  // The form of a dialog is on no page: its own address shows it.
  for (const path of [form.page, addressOf(form)]) {
    const found = path === null ? null : await fetchPage(app(), event, path, session)
    const filled = found === null ? null : fillPage(found, form)
    if (filled !== null) return page(filled, 200, headers)
  }
  return page(views.renderTyped(form), 200, headers)
}

const addressOf = ({ action, fields }: TypedForm): string =>
  `${action}${action.includes('?') ? '&' : '?'}${new URLSearchParams(fields.map((field) => [...field]))}`

/** Asks for a page of our own as a session (`name=value`) sees it; null: it does not see it. */
async function fetchPage(
  app: H3,
  { req, url }: H3Event,
  path: string,
  session: string,
): Promise<string | null> {
  const others = (req.headers.get('cookie') ?? '').split(/; */)
  const own = session.slice(0, session.indexOf('=') + 1)
  const cookie = [session, ...others.filter((pair) => !pair.startsWith(own))].join('; ')
  const headers = { cookie, host: url.host, accept: 'text/html' }
  const response = await app.request(new URL(path, url), { headers })
  const isPage = response.headers.get('content-type')?.startsWith('text/html') === true
  if (response.status === 200 && isPage) return await response.text()
  // Such as a stream, which would go on.
  await response.body?.cancel()
  return null
}

const checkNamed = async (
  named: NamedLogins | undefined,
  person: CallerPerson | null,
  given: string,
): Promise<boolean> => (await named?.checkPassword(person, given)) ?? false

function createLogOut(site: LoginDependencies) {
  const { sessions } = site
  return async (event: H3Event): Promise<Answer> => {
    const caller = callerOf(event)
    const person = personOf(caller)
    if (caller.kind === 'session') {
      await sessions.revoke(caller)
      site.onEnd?.()
      await site.onLogout?.(sessions.renderCookie(caller.id, person))
    }
    await record(site, event, { ...renderPerson(person), kind: 'auth.logout', what: 'logged out' })
    addCookie(event, sessions.clear(event, peerOf(event).isSecure))
    const elsewhere = person === null ? null : (site.providers?.leave(event, person) ?? null)
    return elsewhere ?? seeOther('/ui/login')
  }
}

const renderPerson = (person: CallerPerson | null): Pick<LoginEvent, 'actor' | 'who'> =>
  person === null
    ? { actor: 'operator', who: 'An operator' }
    : { actor: `person:${person.name}`, who: person.name }

interface LoginEvent extends Pick<By, 'actor'> {
  readonly who: string
  readonly kind: string
  readonly what: string
}

async function record(
  { recordAll }: LoginDependencies,
  event: H3Event,
  { actor, who, kind, what }: LoginEvent,
): Promise<void> {
  const on = { subject_id: null, actor, ip: peerOf(event).ip }
  await recordAll([{ ...AUTH, kind, summary: `${who} ${what}` }], on)
}

/** Whoever failed need not be who they said, so it is no act of theirs. */
async function recordFailure(
  { recordAll }: LoginDependencies,
  event: H3Event,
  name: string,
  person: CallerPerson | null,
): Promise<void> {
  const summary = describeFailure(name, person)
  const on = {
    subject_id: person?.name ?? null,
    actor: 'operator',
    ip: peerOf(event).ip,
  } as const
  await recordAll([{ ...AUTH, kind: 'auth.login.failed', summary }], on)
}

const AUTH = { subject_kind: 'auth', details: null } as const

function describeNames(named: NamedLogins | undefined, hasProvider: boolean): LoginView['names'] {
  if (named === undefined) return 'none'
  if (!named.isUsed()) return hasProvider && !named.allowsNameless() ? 'nobody' : 'none'
  return named.allowsNameless() ? 'optional' : 'required'
}

/** What the page is shown with again. */
const readShown = (form: URLSearchParams) => ({
  next: nextOf(form.get('next')),
  name: (form.get('username') ?? '').trim(),
  ended: form.get('ended') ?? undefined,
})

/** What stands in the hidden field where nobody is asked for a name. */
const NAMELESS = 'administrator'

/** Empty: the administrator. */
function readName(form: URLSearchParams, named: NamedLogins | undefined): string {
  if (named === undefined || !named.isUsed()) return ''
  const name = (form.get('username') ?? '').trim().toLowerCase()
  return name === NAMELESS ? '' : name
}

/** What somebody typed that is no name of ours may be a password, and is not on record. */
function describeFailure(name: string, person: CallerPerson | null): string {
  if (name === '') return 'Failed login: wrong password'
  return person === null
    ? 'Failed login: unknown name'
    : `Failed login: wrong password for ${person.name}`
}

/** Comes with the login page and goes back with its form, wherever the session's cookie would. */
const CHECK = 'flasher-login=1'

const renderCheck = (isSecure: boolean) =>
  `${CHECK}; Path=/ui/login; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`

/** Programs send no form of ours: they need not have seen the page. */
const hasLostCookies = ({ req }: H3Event, form: URLSearchParams): boolean =>
  form.has('check') && !(req.headers.get('cookie') ?? '').includes(CHECK)

/** Where to go after the login: the login page itself leads nowhere. */
function nextOf(wanted: string | null): string {
  const path = localPath(wanted, HOME)
  return /^\/ui\/login([?#]|$)/.test(path) ? HOME : path
}
