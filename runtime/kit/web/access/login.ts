/** Logging in and out: one password, a delay that grows with each wrong one, a record of each. */
import type { H3Event } from 'h3'
import { page, seeOther, type Answer } from '../answers/answers.ts'
import type { RecordEvents } from '../answers/plain-event.ts'
import { callerOf, peerOf } from '../answers/caller.ts'
import type { LoginView } from '../ui/site-views.ts'
import { localPath } from '../answers/local-path.ts'
import type { CheckPassword } from './password-check.ts'
import type { Route } from '../answers/route.ts'
import type { Sessions } from './session.ts'
import { PAGES } from '../../../server/texts/texts.ts'
import { fill } from '../../texts/text.ts'

const t = PAGES.frame.login
const HOME = '/ui/dashboard'

interface LoginDependencies {
  readonly sessions: Sessions
  readonly views: { renderLogin(view: LoginView): string }
  readonly check: CheckPassword
  readonly recordAll: RecordEvents
  /** A session has ended in memory. */
  onEnd?(): void
  /** Once a session was ended, with its cookie (`name=value`). */
  onLogout?(cookie: string): Promise<void>
}

/**
 * Makes the routes of the login page, of logging in and out, and of the addresses that lead to the
 * start page.
 */
export function loginRoutes(site: LoginDependencies): readonly Route[] {
  const { sessions, views } = site

  const show = (view: LoginView, status: number, headers = {}) =>
    page(views.renderLogin(view), status, headers)

  async function logIn(event: H3Event, form: URLSearchParams): Promise<Answer> {
    const { ip, isSecure } = peerOf(event)
    const next = nextOf(form.get('next'))
    const given = form.get('password') ?? ''
    if (given === '') return show({ error: t.missing, next }, 401)
    if (hasLostCookies(event, form)) {
      return show({ error: t.noCookies, next }, 400, { 'set-cookie': renderCheck(isSecure) })
    }
    // Made before the check: a password that is changed meanwhile ends it with all others.
    const cookie = sessions.issue(event, isSecure)
    const checked = await site.check(given, ip)
    if (checked.kind === 'wait') {
      const error = fill(t.wait, checked)
      return show({ error, next }, 429, { 'retry-after': String(checked.seconds) })
    }
    if (checked.kind === 'right') {
      await recordEvent(event, 'auth.login.succeeded', 'An operator logged in')
      return seeOther(next, { 'set-cookie': cookie })
    }
    if (checked.isNoted)
      await recordEvent(event, 'auth.login.failed', 'Failed login: wrong password')
    return show({ error: t.wrong, next }, 401)
  }

  async function logOut(event: H3Event): Promise<Answer> {
    const caller = callerOf(event)
    if (caller.kind === 'session') {
      const ended = sessions.revoke(caller.id)
      // It counts already: nobody waits for the disk.
      site.onEnd?.()
      await ended
      await site.onLogout?.(sessions.renderCookie(caller.id))
    }
    await recordEvent(event, 'auth.logout', 'An operator logged out')
    return seeOther('/ui/login', { 'set-cookie': sessions.clear(event, peerOf(event).isSecure) })
  }

  async function recordEvent(event: H3Event, kind: string, summary: string): Promise<void> {
    const on = { subject_id: null, actor: 'operator', ip: peerOf(event).ip } as const
    await site.recordAll([{ kind, subject_kind: 'auth', summary, details: null }], on)
  }

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
        const headers = { 'set-cookie': renderCheck(peerOf(event).isSecure) }
        return show({ error: null, next }, 200, { ...headers, 'cache-control': 'no-store' })
      },
    },
    { method: 'POST', path: '/ui/login', access: 'open', takes: 'form', handle: logIn },
    { method: 'POST', path: '/ui/logout', access: 'page', handle: logOut },
  ]
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
