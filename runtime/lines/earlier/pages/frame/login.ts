/** The login page. */
import { printable } from '../../../../core/foundation/printable.ts'
import type { Frame } from '../../../../web/ui/frame.ts'
import { renderLoginPage } from '../../../../web/ui/login-page.ts'
import { fillHtml, html } from '../../../../web/ui/html.ts'
import type { LoginView } from '../../../../web/ui/site-views.ts'
import { PAGES } from '../../../../core/texts/pages/texts.ts'
import { fill } from '../../../../core/texts/text.ts'

const t = PAGES.earlier.login

/** `user`: who runs the server. */
export const renderLogin = (frame: Frame, user: string, view: LoginView): string =>
  renderLoginPage(frame, {
    ...view,
    heading: 'flasher',
    label: fill(t.label, { user: printable(user) }),
    help: fillHtml(t.help, {
      user: html`<code>${printable(user)}</code>`,
      command: html`<code>passwd ${printable(user)}</code>`,
    }),
  })
