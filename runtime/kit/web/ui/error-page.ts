/** The page of an error: what was refused, what to do, and where to go from there. */
import { PAGES } from '../../../server/texts/texts.ts'
import type { ErrorView } from '../answers/caller.ts'
import { banner } from './elements.ts'
import type { NavLink, PageLayout } from './layout.ts'
import { html } from './html.ts'

const t = PAGES.frame

/** Renders the page, with links to where this caller can go. */
export const renderErrorPage = (layout: PageLayout, view: ErrorView): string =>
  layout.bare({
    title: `${view.status} ${titleOf(view)}`,
    body: html`<section id="question" class="stack">
      <h1 id="dialog-title">${titleOf(view)}</h1>
      ${banner('failed', html`${renderSentence(view.detail)}${view.hint === null ? null : html` ${view.hint}`}`)}
      <nav class="row" aria-label="${t.sections}">
        ${listLinks(layout, view).map(({ href, title }) => html`<a href="${href}">${title}</a> `)}
      </nav>
    </section>`,
  })

/** The status in words, where there are some. */
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
