/** The login page, and the page of an error. */
import { printable } from '../../../../core/foundation/printable.ts'
import { banner } from '../../../../web/ui/elements.ts'
import type { Frame } from '../../../../web/ui/frame.ts'
import { renderLoginPage } from '../../../../web/ui/login-page.ts'
import { html } from '../../../../web/ui/html.ts'
import type { LoginView } from '../../../../web/fleet/views.ts'
import type { ErrorView } from '../../../../web/http/caller.ts'

/** `user`: who runs the server. */
export const renderLogin = (frame: Frame, user: string, view: LoginView): string =>
  renderLoginPage(frame, {
    ...view,
    heading: 'flasher',
    label: `Password of ${printable(user)}`,
    help: html`It is the password of the user <code>${printable(user)}</code> on the server. An
      administrator of that system sets a new one with <code>passwd ${printable(user)}</code>.`,
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
            ? html`<a href="/ui/dashboard">Dashboard</a> · <a href="/ui/machines">Machines</a>`
            : html`<a href="/ui/login">Log in</a>`
        }
      </p>
    </section>`,
  })
