/** The login page, and the page of an error. */
import { printable } from '../../../../core/foundation/printable.ts'
import { banner } from '../../../../web/ui/elements.ts'
import type { Frame } from '../../../../web/ui/frame.ts'
import { renderLoginPage } from '../../../../web/ui/login-page.ts'
import { fillHtml, html } from '../../../../web/ui/html.ts'
import type { LoginView } from '../../../../web/fleet/views.ts'
import type { ErrorView } from '../../../../web/http/caller.ts'
import { PAGES } from '../../../../core/texts/pages/texts.ts'
import { fill } from '../../../../core/texts/text.ts'

const t = PAGES.frame

/** `user`: who runs the server. */
export const renderLogin = (frame: Frame, user: string, view: LoginView): string =>
  renderLoginPage(frame, {
    ...view,
    heading: 'flasher',
    label: fill(PAGES.earlier.login.label, { user: printable(user) }),
    help: fillHtml(PAGES.earlier.login.help, {
      user: html`<code>${printable(user)}</code>`,
      command: html`<code>passwd ${printable(user)}</code>`,
    }),
  })

export const renderError = (frame: Frame, view: ErrorView): string =>
  frame.bare({
    title: `${view.status} ${view.title}`,
    body: html`<section class="stack">
      <h1>${view.title}</h1>
      ${banner('failed', html`${view.detail}${view.hint === null ? null : html` · ${view.hint}`}`)}
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
