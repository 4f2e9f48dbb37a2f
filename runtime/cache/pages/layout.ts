/** The frame of the cache's pages, with the server's links, and its login and error pages. */
import type { H3Event } from 'h3'
import type { Assets } from '../../kit/web/answers/assets.ts'
import { boundsOf, callerOf, peerOf } from '../../kit/web/answers/caller.ts'
import { createLayout, readPlace, type NavLink, type PageView } from '../../kit/web/ui/layout.ts'
import { fillHtml, html } from '../../kit/web/ui/html.ts'
import { renderLoginPage } from '../../kit/web/ui/login-page.ts'
import { IMAGES, SECTIONS } from '../../kit/web/ui/sections.ts'
import type { LoginView } from '../../kit/web/ui/site-views.ts'
import type { ErrorView } from '../../kit/web/answers/caller.ts'
import { linkToServer, parseServerLink, readServerCookie } from '../rules/server-link.ts'
import { PAGES } from '../../server/texts/texts.ts'

const t = PAGES.images

export const HOME = '/ui/dashboard'

export interface CachePages {
  renderLogin(view: LoginView): string
  renderError(view: ErrorView): string
  render(
    event: H3Event,
    view: Omit<PageView, 'theme' | 'here' | 'keys' | 'alarms' | 'waiting' | 'nav'>,
  ): string
  /** A page of the machine server; null: this cache does not know where that is. */
  serverLink(event: H3Event, path: string): string | null
}

interface CachePagesDependencies {
  readonly assets: Assets
  readonly version: string
  /** The address of the server that a setting names; empty: none. */
  serverUrl(): string
  /** The number of captured images that wait for a review. */
  countWaiting(): number
}

/** Creates what renders the pages around their bodies. */
export function createCachePages(parts: CachePagesDependencies): CachePages {
  const layout = createLayout({
    version: parts.version,
    assetUrl: parts.assets.url,
    nav: [{ href: HOME, title: t.title, icon: 'image' }],
  })
  /** What the configuration says counts more than what the latest link said. */
  function findServer(event: H3Event): string | null {
    const set = parts.serverUrl().replace(/\/+$/, '')
    if (set !== '') return set
    const kept = readServerCookie(event.req.headers.get('cookie'))
    return kept === null ? null : parseServerLink(kept, peerOf(event).host)
  }
  function serverLink(event: H3Event, path: string): string | null {
    const server = findServer(event)
    return server === null ? null : linkToServer(server, path)
  }
  return {
    serverLink,
    renderLogin: (view) =>
      renderLoginPage(layout, {
        ...view,
        heading: t.login.heading,
        label: t.login.label,
        help: fillHtml(t.login.help, { command: html`<code>flasher-web password</code>` }),
      }),
    renderError: ({ title, detail, hint }) =>
      layout.bare({
        title,
        body: html`<h1>${title}</h1>
          <p>${detail}</p>
          ${hint === null ? null : html`<p>${hint}</p>`}
          <p><a href="${HOME}">${t.title}</a></p>`,
      }),
    render(event, view) {
      const server = findServer(event)
      return layout.page({
        ...view,
        ...readPlace(event),
        alarms: 0,
        // Nobody else may decide on them.
        waiting: boundsOf(callerOf(event)) === null ? parts.countWaiting() : 0,
        ...(server === null ? {} : { nav: SECTIONS.map((each) => toLink(each, server)) }),
      })
    },
  }
}

/** Images are here, all else is on the server. */
const toLink = (section: NavLink, server: string): NavLink => ({
  ...section,
  href: section.href === IMAGES ? HOME : linkToServer(server, section.href),
})
