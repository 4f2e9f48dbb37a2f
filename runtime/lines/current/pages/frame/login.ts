/** The login page, and the page of an error. */
import { banner } from '../../../../web/ui/elements.ts'
import type { Frame } from '../../../../web/ui/frame.ts'
import { renderLoginPage } from '../../../../web/ui/login-page.ts'
import { fillHtml, html } from '../../../../web/ui/html.ts'
import type { LoginView } from '../../../../web/fleet/views.ts'
import type { ErrorView } from '../../../../web/http/caller.ts'
import { PAGES } from '../../../../core/texts/pages/texts.ts'

const t = PAGES.frame

export const renderLogin = (frame: Frame, view: LoginView): string =>
  renderLoginPage(frame, {
    ...view,
    heading: 'flasher',
    label: t.login.label,
    help: fillHtml(t.login.help, { command: html`<code>flasher-web password</code>` }),
  })

export const renderError = (frame: Frame, view: ErrorView): string =>
  frame.bare({
    title: `${view.status} ${view.title}`,
    body: html`<section id="question" class="stack">
      <h1 id="dialog-title">${view.title}</h1>
      ${banner('failed', html`${renderSentence(view.detail)}${view.hint === null ? null : html` ${view.hint}`}`)}
      <p>
        ${
          view.loggedIn
            ? html`<a href="/ui/dashboard">${t.titles.dashboard}</a> ·
                <a href="/ui/machines">${t.titles.machines}</a>`
            : html`<a href="/ui/login">${t.error.login}</a>`
        }
      </p>
    </section>`,
  })

/** Refusals are clauses; a page shows sentences. */
function renderSentence(clause: string): string {
  const text = clause.charAt(0).toUpperCase() + clause.slice(1)
  return /[.:?]$/.test(text) ? text : `${text}.`
}
