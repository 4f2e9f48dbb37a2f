/** The pages that every web program shows beside its own: logging in, errors and documents. */
import { hostname } from 'node:os'
import { upperFirst } from '#kit/foundation/text.ts'
import type { H3Event } from 'h3'
import type { ErrorView } from '../answers/caller.ts'
import { attributes, type Content, fillHtml, html, type Html } from './html.ts'
import { renderTyped, type TypedForm } from './typed-page.ts'
import { type PageLayout, type PageView, readPlace, type Theme } from './layout.ts'
import { hidden, textField } from './fields.ts'
import { banner } from './elements.ts'
import { localPath } from '../answers/checked.ts'
import { findTab, listOpenSections, type Tab } from './rules/sections.ts'
import { renderTable } from './tables.ts'
import type { Access, Route } from '../answers/route.ts'

export interface ProviderView {
  readonly name: string
  /** Where the login with it begins. */
  readonly href: string
  /** What went wrong with it, as a sentence; null: nothing that is known. */
  readonly error: string | null
}

export interface LoginView {
  readonly error: string | null
  /** A local path to go to afterwards, checked. */
  readonly next: string
  /** The name that was typed; empty: none. */
  readonly name: string
  /**
   * Whether people log in with a name; `optional`: without one it is the administrator. `nobody`: no
   * password opens a session.
   */
  readonly names: 'none' | 'optional' | 'required' | 'nobody'
  /** The provider with which people log in beside that; null: none. */
  readonly provider: ProviderView | null
  /** Set once a session ended under a form: what was typed, sealed; empty: nothing. */
  readonly ended?: string | undefined
}

interface DocumentView {
  readonly title: string
  readonly body: Content
  readonly theme: Theme
  readonly here: string
}

/** What an error page takes from its request, to look like the other pages of who is logged in. */
interface ErrorVisit {
  readonly event: H3Event
  /** Whether the caller may open a page, for the links of the navigation. */
  mayOpen(path: string): boolean
  /** The number of unacknowledged failures; absent: it is not known. */
  readonly alarms?: number
}

export interface SiteViews {
  renderLogin(view: LoginView): string
  renderTyped(form: TypedForm): string
  renderError(view: ErrorView, visit: ErrorVisit): string
  /** A page for everybody, in the frame of the others. */
  renderDocument(view: DocumentView): string
}

const ENDED = 'You were logged out.'
const KEPT =
  'You were logged out. Log in, and what you typed is shown again. Nothing was changed yet.'

export interface OnwardView {
  readonly title: string
  readonly to: string
}

/** Leads to another site at once, where browsers let no form lead. */
export const renderOnward = (layout: PageLayout, { title, to }: OnwardView): string =>
  layout.bare({
    title,
    refresh: to,
    body: html`<h1>${title}</h1>
      <p><a href="${to}">Continue</a></p>`,
  })

/** What was typed into a form that is gone, alone on its page. */
export const renderTypedPage = (layout: PageLayout, form: TypedForm): string =>
  layout.bare({ title: 'What you typed', body: renderTyped(form) })

/** The login page: a field or two, one button, and what to do when the password is forgotten. */

interface Login extends LoginView {
  readonly heading: string
  /** Which server of ours it is; absent: the usual one. */
  readonly what?: string
  readonly label: string
  /** How to set a new password. */
  readonly help: Content
}

/** `error` stands below the field. */
export const renderLoginPage = (layout: PageLayout, view: Login): string =>
  layout.bare({
    title: 'Log in',
    body: html`<h1>${view.heading}</h1>
      <p class="dim">${[hostname(), view.what].filter(Boolean).join(', ')}</p>
      ${view.ended === undefined ? null : banner('needs-you', view.ended === '' ? ENDED : KEPT)}
      ${view.provider === null ? null : renderProvider(view.provider, view)}
      ${view.names === 'nobody' ? null : renderPasswordForm(view)}`,
  })

function renderProvider({ name, href, error }: ProviderView, login: Login): Html {
  const hasPasswords = login.names !== 'nobody'
  // The form shows its own.
  const shown = error ?? (hasPasswords ? null : login.error)
  return html`<section class="stack provider">
    ${shown === null ? null : banner('failed', shown)}
    <a
      class="button primary"
      href="${href}"
      ${attributes({ target: hasKept(login) ? '_blank' : null })}
      >Log in with ${name}</a
    >
    ${
      hasKept(login)
        ? html`<form method="post" action="/ui/login">
            ${hidden({ next: login.next, ended: login.ended ?? '' })}
            <p class="small dim">${name} opens in a new tab. Log in there, then come back.</p>
            <button>I have logged in: show my form</button>
          </form>`
        : null
    }
    ${hasPasswords ? html`<p class="small dim">or with a password</p>` : null}
  </section>`
}

const hasKept = ({ ended = '' }: Login): boolean => ended !== ''

/** The field in which somebody goes on: after a refusal the password, unless it is the name that lacks. */
function chooseFocus({ error, name, names, provider }: Login): 'name' | 'password' | null {
  if (error === null && name === '' && provider !== null) return null
  if (names === 'none' || name !== '') return 'password'
  return error === null || names === 'required' ? 'name' : 'password'
}

const renderPasswordForm = (login: Login): Html => renderFields(login, chooseFocus(login))

const renderFields = (
  { label, help, error, next, name, names, provider, ended }: Login,
  focus: ReturnType<typeof chooseFocus>,
): Html =>
  html`<form method="post" action="/ui/login">
      ${hidden({ next, check: 'cookies', ...(ended !== undefined && { ended }) })}
      ${
        names === 'none'
          ? html`<input name="username" value="administrator" autocomplete="username" hidden />`
          : textField({
              name: 'username',
              label: 'Name',
              value: name,
              autocomplete: 'username',
              required: names === 'required',
              autofocus: focus === 'name',
              hint:
                names === 'required'
                  ? null
                  : 'Your own name. Empty only for the shared administrator password.',
            })
      }
      ${textField({
        name: 'password',
        label: names === 'none' ? label : 'Password',
        type: 'password',
        autocomplete: 'current-password',
        required: true,
        autofocus: focus === 'password',
        error,
      })}
      <button class="${provider === null ? 'primary' : ''}" data-busy="Logging in…">Log in</button>
    </form>
    <details>
      <summary>Forgot password?</summary>
      <p class="prose">${help}</p>
    </details>`

/** The page of an error: what was refused, what to do, and where to go from there. */
interface PersonVisit extends ErrorVisit, Pick<PageView, 'who' | 'nav' | 'waiting'> {
  /** Where a person goes whom no section can be named; absent: to the first one. */
  readonly home?: string
}

/**
 * In the frame of the others where somebody is logged in and it is no answer of a dialog, else
 * alone, with links to where this caller can go.
 */
export const renderErrorPage = (
  layout: PageLayout,
  view: ErrorView,
  visit: PersonVisit | null = null,
): string =>
  visit === null || !view.loggedIn || visit.event.req.headers.has('hx-request')
    ? renderAlone(layout, view)
    : renderInLayout(layout, view, visit)

function renderInLayout(
  layout: PageLayout,
  view: ErrorView,
  { event, mayOpen, who = null, nav: all = layout.nav, home, alarms = 0, waiting = 0 }: PersonVisit,
): string {
  const nav = listOpenSections(all, mayOpen)
  const section = findTab(nav, event.url.pathname)
  const way = section ?? nav.find(({ href }) => href === home) ?? nav[0]
  return layout.page({
    title: `${view.status} ${titleOf(view)}`,
    heading: titleOf(view),
    body: html`${renderBanner(view)} ${renderWays(findAgain(view, event), way)}`,
    section: section?.href ?? '',
    nav,
    alarms,
    waiting,
    who,
    ...readPlace(event),
  })
}

const renderWays = (again: Way | null, section: Tab | undefined): Html =>
  html`<p class="row">
    ${again === null ? null : html`<a class="button primary" href="${again.href}">${again.title}</a>`}
    ${section === undefined ? null : html`<a class="button" href="${section.href}">Go to ${section.title}</a>`}
  </p>`

type Way = Pick<Tab, 'href' | 'title'>

/** Errors that may be gone when the same is asked again. */
const PASSING: ReadonlySet<number> = new Set([429, 500, 502, 503, 507])

/** The next step that helps: the page of a form that was refused, or the same address once more; null: neither. */
function findAgain({ status }: ErrorView, event: H3Event): Way | null {
  const { method, headers } = event.req
  if (method === 'GET' || method === 'HEAD') {
    const href = localPath(`${event.url.pathname}${event.url.search}`, '')
    return PASSING.has(status) && href !== '' ? { href, title: 'Try again' } : null
  }
  const from = URL.parse(headers.get('referer') ?? '')
  if (from === null || event.context.peer?.ownHosts.includes(from.host) !== true) return null
  const href = localPath(`${from.pathname}${from.search}`, '')
  return href === '' ? null : { href, title: 'Back to the form' }
}

const renderAlone = (layout: PageLayout, view: ErrorView): string =>
  layout.bare({
    title: `${view.status} ${titleOf(view)}`,
    body: html`<section id="question" class="stack">
      <h1 id="dialog-title">${titleOf(view)}</h1>
      ${renderBanner(view)}
      <nav class="row" aria-label="Sections">
        ${listLinks(layout, view).map(({ href, title }) => html`<a href="${href}">${title}</a> `)}
      </nav>
    </section>`,
  })

/** What the framework says is its name of the status, which tells people nothing. */
const renderBanner = ({ status, title, detail, hint }: ErrorView): Html => {
  const words = detail === title ? SENTENCES.get(String(status)) : undefined
  return banner(
    'failed',
    html`${words ?? renderSentence(detail)}${hint === null ? null : html` ${hint}`}`,
  )
}

const ERROR_SENTENCES = {
  '400': 'The address or the form cannot be read. Go back and try again.',
  '403': 'You are not allowed to do this. Ask an administrator.',
  '404': 'There is nothing at this address. It is mistyped, or the page was removed.',
  '405': 'This address does not support this kind of request.',
  '413': 'The upload or form is larger than this server accepts.',
  '500': 'The server could not answer. Its log says why.',
} as const

const SENTENCES: ReadonlyMap<string, string> = new Map(Object.entries(ERROR_SENTENCES))

const titleOf = ({ status, title }: ErrorView): string => TITLES.get(String(status)) ?? title

/** By the status of the answer. */
const ERROR_TITLES = {
  '400': 'Invalid request',
  '401': 'Log in first',
  '403': 'Not allowed',
  '404': 'Not found',
  '405': 'Not possible here',
  '409': 'Not possible now',
  '412': 'Changed in the meantime',
  '413': 'Too large',
  '422': 'Invalid entries',
  '429': 'Too many attempts',
  '500': 'The server failed',
  '502': 'Another server failed',
  '503': 'Not available at the moment',
  '507': 'The disk is full',
} as const

const TITLES: ReadonlyMap<string, string> = new Map(Object.entries(ERROR_TITLES))

function listLinks({ nav }: PageLayout, { loggedIn, seesAll }: ErrorView): readonly Way[] {
  if (!loggedIn) return [{ href: '/ui/login', title: 'Log in' }]
  return seesAll ? nav : nav.filter(({ href }) => FOR_ALL.has(href))
}

/** Sections that are open to everybody who is logged in. */
const FOR_ALL: ReadonlySet<string> = new Set(['/ui/dashboard', '/ui/machines'])

/** Refusals are clauses; a page shows sentences. */
function renderSentence(clause: string): string {
  const text = upperFirst(clause)
  return /[.:?]$/.test(text) ? text : `${text}.`
}

/** Routes without a description are left out. */
export function renderDocument(version: string, routes: readonly Route[]): Html {
  const rows = routes.flatMap((route) =>
    route.doc === undefined ? [] : [renderRow(route, route.doc.summary, route.doc.query ?? {})],
  )
  return html`<p class="prose">
      ${fillHtml(
        'The HTTP API of flasher-web {version}. Errors are {error}; an invalid body gets a 422 with a list that names each field. Where a scope is given, send the session cookie or {header} with a token that has that scope. For programs: {document}.',
        {
          version,
          error: html`<code>{"detail": …}</code>`,
          header: html`<code>Authorization: Bearer</code>`,
          document: html`<a href="/openapi.json">openapi.json</a>`,
        },
      )}
    </p>
    ${renderTable({ caption: 'All routes', columns: ['Request', 'Scope', 'Description'], rows })}`
}

function renderRow(route: Route, summary: string, query: Readonly<Record<string, string>>): Html {
  const access: Access = typeof route.access === 'function' ? route.access() : route.access
  const terms = Object.entries(query).map(
    ([name, meaning]) => html`<div class="small dim"><code>${name}</code> ${meaning}</div>`,
  )
  return html`<tr>
    <td class="nowrap"><code>${route.method} ${route.path}</code></td>
    <td>${typeof access === 'object' || access === 'open' ? '–' : access}</td>
    <td>${summary}${terms}</td>
  </tr>`
}
