/** Logging in and out: one password, a delay that grows with each wrong one, a record of each. */
import { HTTPResponse, type H3Event } from 'h3'
import { networkOf } from '../../core/access/login-throttle.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import { page, seeOther } from '../http/answers.ts'
import type { LoginView } from './views.ts'
import type { Site } from './site.ts'
import type { Attempts } from '../http/attempts.ts'
import { localPath } from '../http/local-path.ts'
import { createLoginLanes } from '../http/login-lanes.ts'
import type { Route } from '../http/route.ts'
import type { Sessions } from '../http/session.ts'

const HOME = '/ui/dashboard'

/** What logging in requires of a server. */
interface LoginSite extends Pick<
  Site<MachineBase>,
  'peer' | 'caller' | 'noteAll' | 'checkPassword' | 'onLogout'
> {
  readonly views: { renderLogin(view: LoginView): string }
  /** Wrong passwords, wherever they are given. */
  readonly attempts: Attempts
}

export function loginRoutes(site: LoginSite, sessions: Sessions): readonly Route[] {
  const { views, attempts } = site
  const lanes = createLoginLanes()

  const show = (view: LoginView, status: number, headers = {}) =>
    page(views.renderLogin(view), status, headers)

  function slow(seconds: number, next: string) {
    const error = `Too many attempts: try again in ${seconds} s.`
    return show({ error, next }, 429, { 'retry-after': String(seconds) })
  }

  async function logIn(event: H3Event, form: URLSearchParams): Promise<unknown> {
    const { ip, isSecure } = site.peer(event)
    const next = nextOf(form.get('next'))
    const wait = attempts.waitOf(ip)
    if (wait > 0) return slow(wait, next)
    const given = form.get('password') ?? ''
    if (given === '') return show({ error: 'Enter the password.', next }, 401)
    const checked = lanes.run(networkOf(ip), () => site.checkPassword(given))
    if (checked === null) return slow(1, next)
    // Counted before it is known to be wrong: many at once are no way around the delay.
    const isNoted = attempts.count(ip)
    if (await checked) {
      attempts.forgive(ip)
      await note(event, 'auth.login.succeeded', 'An operator logged in')
      return seeOther(next, { 'set-cookie': sessions.issue(isSecure) })
    }
    if (isNoted) await note(event, 'auth.login.failed', 'Somebody gave a wrong password')
    return show({ error: 'That is not the password.', next }, 401)
  }

  async function logOut(event: H3Event): Promise<unknown> {
    const caller = site.caller(event)
    if (caller.kind === 'session') {
      await sessions.revoke(caller.id)
      await site.onLogout?.(sessions.renderCookie(caller.id))
    }
    await note(event, 'auth.logout', 'An operator logged out')
    return new HTTPResponse('', {
      status: 303,
      headers: {
        location: '/ui/login',
        'set-cookie': sessions.clear(site.peer(event).isSecure),
      },
    })
  }

  async function note(event: H3Event, kind: string, summary: string): Promise<void> {
    const { ip } = site.peer(event)
    await site.noteAll([{ kind, subject_kind: 'auth', summary, details: null }], {
      subject_id: null,
      actor: 'operator',
      ip,
    })
  }

  return [
    { method: 'GET', path: '/', access: 'open', handle: () => seeOther(HOME) },
    { method: 'GET', path: '/ui', access: 'open', handle: () => seeOther(HOME) },
    {
      method: 'GET',
      path: '/ui/login',
      access: 'open',
      handle(event) {
        const next = nextOf(event.url.searchParams.get('next'))
        if (sessions.read(event) !== null) return seeOther(next)
        return show({ error: null, next }, 200, { 'cache-control': 'no-store' })
      },
    },
    { method: 'POST', path: '/ui/login', access: 'open', takes: 'form', handle: logIn },
    { method: 'POST', path: '/ui/logout', access: 'page', handle: logOut },
  ]
}

/** Where to go after the login: the login page itself leads nowhere. */
function nextOf(wanted: string | null): string {
  const path = localPath(wanted, HOME)
  return /^\/ui\/login([?#]|$)/.test(path) ? HOME : path
}
