/** The page of an error: what was refused, what to do, and where to go from there. */
import { PAGES } from '../../../server/texts/texts.ts'
import type { ErrorView } from '../answers/caller.ts'
import { banner } from './elements.ts'
import type { PageLayout } from './layout.ts'
import { html } from './html.ts'

const t = PAGES.frame

/** Renders the page, with links to where this caller can go. */
export const renderErrorPage = (layout: PageLayout, view: ErrorView): string =>
  layout.bare({
    title: `${view.status} ${view.title}`,
    body: html`<section id="question" class="stack">
      <h1 id="dialog-title">${view.title}</h1>
      ${banner('failed', html`${renderSentence(view.detail)}${view.hint === null ? null : html` ${view.hint}`}`)}
      <p>
        ${
          view.loggedIn
            ? html`<a href="/ui/dashboard">${t.titles.dashboard}</a> ·
                <a href="/ui/machines">${t.titles.machines}</a>`
            : html`<a href="/ui/login">${t.login.title}</a>`
        }
      </p>
    </section>`,
  })

/** Refusals are clauses; a page shows sentences. */
function renderSentence(clause: string): string {
  const text = clause.charAt(0).toUpperCase() + clause.slice(1)
  return /[.:?]$/.test(text) ? text : `${text}.`
}
