/** The login page. */
import { printable } from '../../../../kit/foundation/printable.ts'
import type { PageLayout } from '../../../../kit/web/ui/layout.ts'
import { renderLoginPage } from '../../../../kit/web/ui/login-page.ts'
import { fillHtml, html } from '../../../../kit/web/ui/html.ts'
import type { LoginView } from '../../../../kit/web/ui/site-views.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill } from '../../../../kit/texts/text.ts'

const t = PAGES.earlier.login

/** Renders the login page. `user` is the account that runs the server, whose password it asks for. */
export const renderLogin = (layout: PageLayout, user: string, view: LoginView): string =>
  renderLoginPage(layout, {
    ...view,
    heading: 'flasher',
    label: fill(t.label, { user: printable(user) }),
    help: fillHtml(t.help, {
      user: html`<code>${printable(user)}</code>`,
      command: html`<code>passwd ${printable(user)}</code>`,
    }),
  })
