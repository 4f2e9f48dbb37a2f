/** Logging in and out: one password, a delay that grows with each wrong one, a record of each. */
import { HTTPResponse, type H3Event } from 'h3'
import { nextFailure, throttleKey, waitOf, type Failures } from '../core/login-throttle.ts'
import type { MachineBase } from '../core/machine.ts'
import { page, seeOther } from './answers.ts'
import type { LoginView, ServerLine } from './line.ts'
import type { Site } from './site.ts'
import { localPath } from './local-path.ts'
import type { Route } from './route.ts'
import type { Sessions } from './session.ts'

const HOME = '/ui/dashboard'
/** Addresses whose failures are remembered; the oldest are forgotten first. */
const MOST_ADDRESSES = 10_000
/** Checks under way at once: each is slow on purpose. */
const MOST_CHECKS = 4

/** What logging in takes of a server. */
export interface LoginSite extends Pick<Site<MachineBase>, 'now' | 'peer' | 'caller' | 'noteAll'> {
  readonly line: Pick<ServerLine<MachineBase>, 'renderLogin' | 'checkPassword'>
}

export function loginRoutes(site: LoginSite, sessions: Sessions): readonly Route[] {
  const { line } = site
  const failures = new Map<string, Failures>()
  let checks = 0

  const show = (view: LoginView, status: number, headers = {}) =>
    page(line.renderLogin(view), status, headers)

  function fail(key: string): void {
    const next = nextFailure(failures.get(key) ?? null, site.now().getTime())
    // Deleted first, so that the newest stand last.
    failures.delete(key)
    failures.set(key, next)
    if (failures.size > MOST_ADDRESSES) failures.delete(failures.keys().next().value ?? '')
  }

  async function isRight(given: string): Promise<boolean> {
    checks += 1
    try {
      return await line.checkPassword(given)
    } finally {
      checks -= 1
    }
  }

  async function logIn(event: H3Event, form: URLSearchParams): Promise<unknown> {
    const { ip, isSecure } = site.peer(event)
    const next = nextOf(form.get('next'))
    const key = throttleKey(ip)
    const wait = waitOf(failures.get(key) ?? null, site.now().getTime())
    if (wait > 0 || checks >= MOST_CHECKS) {
      const seconds = Math.max(1, wait)
      const error = `Too many attempts: try again in ${seconds} s.`
      return show({ error, next }, 429, { 'retry-after': String(seconds) })
    }
    const given = form.get('password') ?? ''
    if (given === '') return show({ error: 'Enter the password.', next }, 401)
    // Counted before it is known to be wrong: many at once are no way around the delay.
    const before = failures.get(key) ?? null
    fail(key)
    if (await isRight(given)) {
      failures.delete(key)
      await note(event, 'auth.login.succeeded', 'An operator logged in')
      return seeOther(next, { 'set-cookie': sessions.issue(isSecure) })
    }
    if (before === null || before.count < NOTED) {
      await note(event, 'auth.login.failed', 'Somebody gave a wrong password')
    }
    return show({ error: 'That is not the password.', next }, 401)
  }

  async function logOut(event: H3Event): Promise<unknown> {
    const caller = site.caller(event)
    if (caller.kind === 'session') await sessions.revoke(caller.id)
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

/** Wrong passwords of one address that are put on record each; the rest are the same guessing. */
const NOTED = 50

/** Where to go after the login: the login page itself leads nowhere. */
function nextOf(wanted: string | null): string {
  const path = localPath(wanted, HOME)
  return /^\/ui\/login([?#]|$)/.test(path) ? HOME : path
}
