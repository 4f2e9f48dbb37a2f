/** The frame of the cache's pages, in the look of the server's, and the two pages without one of its own. */
import type { H3Event } from 'h3'
import type { Assets } from '../../services/host/assets.ts'
import { banner } from '../../web/ui/elements.ts'
import { textField } from '../../web/ui/fields.ts'
import { createFrame } from '../../web/ui/frame.ts'
import { hidden } from '../../web/ui/fields.ts'
import { html, type Content } from '../../web/ui/html.ts'
import type { LoginView } from '../../web/fleet/views.ts'
import type { ErrorView } from '../../web/http/caller.ts'
import { readTheme } from '../../web/ui/theme.ts'

export interface CachePages {
  renderLogin(view: LoginView): string
  renderError(view: Omit<ErrorView, 'loggedIn'>, event: H3Event): string
  render(event: H3Event, view: CachePage): string
}

interface CachePage {
  readonly title: string
  readonly count?: Content
  readonly section: string
  readonly actions?: Content
  readonly messages?: Content
  readonly body: Content
}

export function createCachePages(parts: {
  readonly assets: Assets
  readonly version: string
}): CachePages {
  const frame = createFrame({
    version: parts.version,
    assetUrl: parts.assets.url,
    nav: [{ href: '/ui/dashboard', title: 'Images', icon: 'image' }],
  })
  return {
    renderLogin: ({ error, next }) =>
      frame.bare({
        title: 'Log in',
        body: html`<h1>Image cache</h1>
          ${error === null ? null : banner('failed', error)}
          <form method="post" action="/ui/login">
            ${hidden({ next })}
            ${textField({
              name: 'password',
              label: 'Password',
              type: 'password',
              autocomplete: 'current-password',
              required: true,
              autofocus: true,
            })}
            <button class="primary">Log in</button>
          </form>
          <p class="hint">
            It is the one of flasher-web where both run on one machine. Lost it? Run
            <code>flasher-web password</code> there.
          </p>`,
      }),
    renderError: ({ title, detail, hint }) =>
      frame.bare({
        title,
        body: html`<h1>${title}</h1>
          <p>${detail}</p>
          ${hint === null ? null : html`<p>${hint}</p>`}
          <p><a href="/ui/dashboard">To the images</a></p>`,
      }),
    render: (event, view) =>
      frame.page({
        ...view,
        theme: readTheme(event),
        here: `${event.url.pathname}${event.url.search}`,
        alarms: 0,
      }),
  }
}
