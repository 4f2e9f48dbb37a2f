/** The login page. */
import type { Frame } from '../../../../web/ui/frame.ts'
import { renderLoginPage } from '../../../../web/ui/login-page.ts'
import { fillHtml, html } from '../../../../web/ui/html.ts'
import type { LoginView } from '../../../../web/fleet/views.ts'
import { PAGES } from '../../../../core/texts/pages/texts.ts'

const t = PAGES.frame

export const renderLogin = (frame: Frame, view: LoginView): string =>
  renderLoginPage(frame, {
    ...view,
    heading: 'flasher',
    label: t.login.label,
    help: fillHtml(t.login.help, { command: html`<code>flasher-web password</code>` }),
  })
