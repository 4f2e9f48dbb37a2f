/** The frame of the cache's pages, styled like the server's, with its login and error pages. */
import type { H3Event } from 'h3'
import type { Assets } from '../../services/host/assets.ts'
import { createFrame, type PageView } from '../../web/ui/frame.ts'
import { html } from '../../web/ui/html.ts'
import { renderLoginPage } from '../../web/ui/login-page.ts'
import type { LoginView } from '../../web/fleet/views.ts'
import type { ErrorView } from '../../web/http/caller.ts'
import { readTheme } from '../../web/ui/theme.ts'

export interface CachePages {
  renderLogin(view: LoginView): string
  renderError(view: ErrorView): string
  render(event: H3Event, view: Omit<PageView, 'theme' | 'here' | 'alarms'>): string
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
    renderLogin: (view) =>
      renderLoginPage(frame, {
        ...view,
        heading: 'Image cache',
        label: 'Password',
        help: html`Run <code>flasher-web password</code> on the server to set a new password. The
          cache uses the password of flasher-web when both run on the same machine.`,
      }),
    renderError: ({ title, detail, hint }) =>
      frame.bare({
        title,
        body: html`<h1>${title}</h1>
          <p>${detail}</p>
          ${hint === null ? null : html`<p>${hint}</p>`}
          <p><a href="/ui/dashboard">Images</a></p>`,
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
