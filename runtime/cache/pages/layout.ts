/** The frame of the cache's pages, with the server's links, and its login and error pages. */
import type { H3Event } from 'h3'
import type { Assets } from '#kit/web/answers/assets.ts'
import { boundsOf, callerOf, peerOf } from '#kit/web/answers/caller.ts'
import { createLayout, readPlace, type PageView } from '#kit/web/ui/layout.ts'
import { IMAGES, SECTIONS, type Section, type Tab } from '#kit/web/ui/rules/sections.ts'
import { fillHtml, html } from '#kit/web/ui/html.ts'
import type { TypedForm } from '#kit/web/ui/typed-page.ts'
import {
  renderErrorPage,
  renderLoginPage,
  renderTypedPage,
  type LoginView,
} from '#kit/web/ui/site-views.ts'
import type { ErrorView } from '#kit/web/answers/caller.ts'
import { linkToServer, parseServerLink, readServerCookie } from '#cache/rules/image-list.ts'

export const HOME = '/ui/dashboard'

export interface CachePages {
  renderLogin(view: LoginView): string
  renderTyped(form: TypedForm): string
  renderError(view: ErrorView, event: H3Event): string
  render(
    event: H3Event,
    view: Omit<PageView, 'theme' | 'here' | 'keys' | 'alarms' | 'waiting' | 'nav'>,
  ): string
  /** Null: the server's address is unknown. */
  serverLink(event: H3Event, path: string): string | null
}

interface CachePagesDependencies {
  readonly assets: Assets
  readonly version: string
  /** Empty: none is set. */
  serverUrl(): string
  countWaiting(): number
}

export function createCachePages(parts: CachePagesDependencies): CachePages {
  const layout = createLayout({
    version: parts.version,
    assetUrl: parts.assets.url,
    nav: OWN,
    hasKeys: true,
  })
  /** The setting wins over the latest link. */
  function findServer(event: H3Event): string | null {
    const set = parts.serverUrl().replace(/\/+$/, '')
    if (set !== '') return set
    const kept = readServerCookie(event.req.headers.get('cookie'))
    return kept === null ? null : parseServerLink(kept, peerOf(event).host)
  }
  function navOf(event: H3Event): readonly Section[] {
    const server = findServer(event)
    return server === null ? OWN : SECTIONS.map((each) => toLink(each, server))
  }
  /** People limited to some labels do not decide on captures. */
  const waitingFor = (event: H3Event) =>
    boundsOf(callerOf(event)) === null ? parts.countWaiting() : 0
  const visitOf = (event: H3Event) => ({
    event,
    mayOpen: () => true,
    home: HOME,
    nav: navOf(event),
    waiting: waitingFor(event),
  })
  function serverLink(event: H3Event, path: string): string | null {
    const server = findServer(event)
    return server === null ? null : linkToServer(server, path)
  }
  return {
    serverLink,
    renderTyped: (form) => renderTypedPage(layout, form),
    renderLogin: (view) =>
      renderLoginPage(layout, {
        ...view,
        heading: 'flasher',
        what: 'image cache',
        label: 'Password',
        help: fillHtml(
          'Run {command} on the server to set a new password. The cache uses the password of flasher-web when both run on the same machine.',
          { command: html`<code>flasher-web password</code>` },
        ),
      }),
    renderError: (view, event) =>
      renderErrorPage(layout, view, view.loggedIn ? visitOf(event) : null),
    render: (event, view) =>
      layout.page({
        ...view,
        ...readPlace(event),
        alarms: 0,
        waiting: waitingFor(event),
        nav: navOf(event),
      }),
  }
}

const OWN: readonly Section[] = [{ href: HOME, title: 'Images', icon: 'image', key: 'i' }]

function toLink({ tabs = [], ...section }: Section, server: string): Section {
  const lead = <T extends Tab>(link: T): T => ({
    ...link,
    href: link.href === IMAGES ? HOME : linkToServer(server, link.href),
  })
  return { ...lead(section), tabs: tabs.map(lead) }
}
