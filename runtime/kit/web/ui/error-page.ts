/** The page of an error: what was refused, what to do, and where to go from there. */
import type { H3Event } from 'h3'
import { PAGES } from '#server/texts/texts.ts'
import type { ErrorView } from '../answers/caller.ts'
import { localPath } from '../answers/local-path.ts'
import { banner } from './elements.ts'
import { readPlace, type NavLink, type PageLayout, type PageView } from './layout.ts'
import { html, type Html } from './html.ts'
import type { ErrorVisit } from './site-views.ts'
import { fill } from '#kit/texts/text.ts'

const t = PAGES.frame

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
  const nav = all.filter(({ href }) => mayOpen(href))
  // An address of the API belongs to the section of its pages.
  const path = event.url.pathname.replace(/^\/(?!ui\/)/, '/ui/')
  const section = nav.find(({ href }) => path === href || path.startsWith(`${href}/`))
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

const renderWays = (again: Way | null, section: NavLink | undefined): Html =>
  html`<p class="row">
    ${again === null ? null : html`<a class="button primary" href="${again.href}">${again.title}</a>`}
    ${section === undefined ? null : html`<a class="button" href="${section.href}">${fill(t.errorWay, { section: section.title })}</a>`}
  </p>`

type Way = Pick<NavLink, 'href' | 'title'>

/** Errors that may be gone when the same is asked again. */
const PASSING: ReadonlySet<number> = new Set([429, 500, 502, 503, 507])

/** The next step that helps: the page of a form that was refused, or the same address once more; null: neither. */
function findAgain({ status }: ErrorView, event: H3Event): Way | null {
  const { method, headers } = event.req
  if (method === 'GET' || method === 'HEAD') {
    const href = localPath(`${event.url.pathname}${event.url.search}`, '')
    return PASSING.has(status) && href !== '' ? { href, title: t.errorAgain } : null
  }
  const from = URL.parse(headers.get('referer') ?? '')
  if (from === null || event.context.peer?.ownHosts.includes(from.host) !== true) return null
  const href = localPath(`${from.pathname}${from.search}`, '')
  return href === '' ? null : { href, title: t.errorBack }
}

const renderAlone = (layout: PageLayout, view: ErrorView): string =>
  layout.bare({
    title: `${view.status} ${titleOf(view)}`,
    body: html`<section id="question" class="stack">
      <h1 id="dialog-title">${titleOf(view)}</h1>
      ${renderBanner(view)}
      <nav class="row" aria-label="${t.sections}">
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

const SENTENCES: ReadonlyMap<string, string> = new Map(Object.entries(t.errorSentences))

const titleOf = ({ status, title }: ErrorView): string => TITLES.get(String(status)) ?? title

const TITLES: ReadonlyMap<string, string> = new Map(Object.entries(t.errors))

function listLinks(
  { nav }: PageLayout,
  { loggedIn, seesAll }: ErrorView,
): readonly Pick<NavLink, 'href' | 'title'>[] {
  if (!loggedIn) return [{ href: '/ui/login', title: t.login.title }]
  return seesAll ? nav : nav.filter(({ href }) => FOR_ALL.has(href))
}

/** Sections that are open to everybody who is logged in. */
const FOR_ALL: ReadonlySet<string> = new Set(['/ui/dashboard', '/ui/machines'])

/** Refusals are clauses; a page shows sentences. */
function renderSentence(clause: string): string {
  const text = clause.charAt(0).toUpperCase() + clause.slice(1)
  return /[.:?]$/.test(text) ? text : `${text}.`
}
