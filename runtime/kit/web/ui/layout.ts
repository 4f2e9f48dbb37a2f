/** The layout of every page: document head, side bar, title line, messages and colour scheme. */
import { getCookie, type H3Event } from 'h3'
import { attributes, type Content, html, type Html } from './html.ts'
import { icon, type IconName, SPRITE } from './elements.ts'
import { KEYS_PATH, opensKeys, readKeys } from './keys-page.ts'
import { seeOther } from '../answers/answers.ts'
import { localPath } from '../answers/checked.ts'
import type { Route } from '../answers/route.ts'
import { holds, type Section } from './rules/sections.ts'

/** The longest text that is searched for, in characters. */
export const MAX_FIND = 200

interface LayoutDependencies {
  readonly version: string
  readonly assetUrl: (name: string) => string
  readonly nav: readonly Section[]
  /** The path of the search of everything; absent: there is none. */
  readonly find?: string
  /** The search is on another server, so that nothing is listed while somebody types; absent: it is here. */
  readonly isElsewhere?: boolean
  readonly hasKeys?: boolean
  /** Where the account is, if not at its usual path here. */
  readonly account?: string
  /** Where the documentation is; absent: not here. */
  readonly docs?: string
}

export interface PageView {
  readonly title: string
  /** Replaces the title in the title line. */
  readonly heading?: Content
  readonly count?: Content
  /** Above the title: links to the pages that lead here. */
  readonly trail?: Content
  /** The event stream that keeps the page up to date. */
  readonly updates?: string
  /** The page of the documentation about it, with its anchor: `dhcp.html#kea`. */
  readonly learn?: string
  /** Beside the title; what it unfolds is below it. */
  readonly edit?: Content
  /** At the right of the title line: at most one primary button. */
  readonly actions?: Content
  readonly messages?: Content
  readonly body: Content
  /** `href` of the section or tab to highlight; empty: none. */
  readonly section: string
  readonly theme: Theme
  /** Address of the page, for forms that return to it. */
  readonly here: string
  /** Whether single keys do something. */
  readonly keys: boolean
  /** The number of unacknowledged failures, shown beside Events. */
  readonly alarms: number
  /** The number of captured images that wait for a review, shown beside Images; absent: none. */
  readonly waiting?: number
  /** The number of batches that have not ended, shown beside Batches; absent: none. */
  readonly batches?: number
  /** Other links than the usual ones, where the page is not the server's own. */
  readonly nav?: readonly Section[]
  /** What a line adds below its navigation. */
  readonly foot?: Content
  /** The person who is logged in, and whether they may only look; null or absent: the administrator, or nobody. */
  readonly who?: {
    readonly name: string
    readonly looks: boolean
    readonly sees: string | null
  } | null
}

export const readPlace = (event: H3Event): Pick<PageView, 'theme' | 'here' | 'keys'> => ({
  theme: readTheme(event),
  keys: readKeys(event),
  here: `${event.url.pathname}${event.url.search}`,
})

export interface PageLayout {
  readonly nav: readonly Section[]
  page(view: PageView): string
  /** For the login page and errors. `refresh`: where it leads at once. */
  bare(view: Pick<PageView, 'title' | 'body'> & { readonly refresh?: string }): string
}

/** Matches the Content-Security-Policy: no inline scripts or styles, no other origins. */
const HTMX_CONFIG = JSON.stringify({
  includeIndicatorStyles: false,
  allowEval: false,
  allowScriptTags: false,
  historyCacheSize: 0,
  selfRequestsOnly: true,
})

const SCRIPTS = ['htmx.min.js', 'sse.min.js', 'idiomorph-ext.min.js'] as const

export function createLayout(parts: LayoutDependencies): PageLayout {
  return {
    nav: parts.nav,
    page: (view) =>
      String(
        html`<!doctype html>
          <html
            lang="en"
            ${attributes({ 'data-theme': view.theme === 'system' ? null : view.theme })}
          >
            ${renderHead(parts, view.title, true)}
            <body
              ${attributes({
                'data-role': view.who?.looks === true ? 'look' : null,
                'data-keys': parts.hasKeys === true && view.keys ? KEYS_PATH : null,
              })}
            >
              ${SPRITE}
              <a class="skip" href="#content">Skip to content</a>
              ${renderSide(parts, view)} ${renderMain(parts.nav, view)}
              <dialog id="dialog" aria-labelledby="dialog-title"></dialog>
              ${parts.find === undefined || parts.isElsewhere ? null : renderFindDialog(parts.find)}
              <div
                id="spoken"
                class="spoken"
                aria-live="polite"
                ${attributes({ 'data-copied': 'Copied', 'data-selected': 'Selected' })}
              ></div>
            </body>
          </html> `,
      ),
    bare: ({ title, body, refresh }) =>
      String(
        html`<!doctype html>
          <html lang="en">
            ${renderHead(parts, title, false, refresh)}
            <body class="bare">
              ${SPRITE}
              <main id="content">${body}</main>
            </body>
          </html> `,
      ),
  }
}

const renderHead = (
  { assetUrl }: LayoutDependencies,
  title: string,
  isScripted: boolean,
  refresh?: string,
): Html =>
  html`<head>
    <meta charset="utf-8" />
    ${refresh === undefined ? null : html`<meta http-equiv="refresh" content="0; url=${refresh}" />`}
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    ${isScripted ? html`<meta name="htmx-config" content="${HTMX_CONFIG}" />` : null}
    <title>${title} · flasher</title>
    <link rel="icon" href="${assetUrl('icon.svg')}" type="image/svg+xml" />
    <link rel="stylesheet" href="${assetUrl('open-props.min.css')}" />
    <link rel="stylesheet" href="${assetUrl('flasher.css')}" />
    <script src="${assetUrl('theme.js')}"></script>
    ${
      isScripted
        ? html`${SCRIPTS.map((name) => html`<script src="${assetUrl(name)}" defer></script>`)}
            <script src="${assetUrl('flasher.js')}" type="module"></script>`
        : html`<script src="${assetUrl('busy.js')}" type="module"></script>`
    }
  </head>`

const renderSide = (parts: LayoutDependencies, view: PageView): Html => {
  const { version } = parts
  const nav = view.nav ?? parts.nav
  return html`<header class="side">
    ${renderBrand(nav[0] ?? ACCOUNT, view)}
    ${parts.find === undefined ? null : renderFindForm(parts.find)}
    <nav aria-label="Sections">
      <ul>
        ${nav.map((each) => (each.isHome === true ? null : html`<li>${renderLink(each, view)}</li>`))}
      </ul>
    </nav>
    <div class="foot">
      ${themeSwitch(view.theme, view.here)} ${renderAccount(parts, view)} ${view.foot}
      <span class="version"
        ><span title="Version of this server">${version}</span
        >${parts.hasKeys === true ? html` <a ${opensKeys(view.here)}>Keys</a>` : null}${
          parts.docs === undefined ? null : html` <a href="${parts.docs}">Docs</a>`
        }</span
      >
    </div>
  </header>`
}

/** Leads to the first section; the page that is behind it alone has its name here. */
const renderBrand = (link: SideLink, view: PageView): Html =>
  html`<a
    class="brand"
    href="${link.href}"
    ${
      link.isHome === true
        ? attributes({
            'aria-label': `flasher: ${link.title}`,
            'aria-current': currentOf(link, view),
            title: link.title,
            'data-key': link.key ?? null,
          })
        : null
    }
    >flasher</a
  >`

/** The form of the side bar; where that is narrow, a link to the page of the search. */
const renderFindForm = (path: string): Html =>
  html`<form class="find" role="search" action="${path}" aria-label="Search everything">
      <input
        type="search"
        id="find"
        name="q"
        aria-label="Search everything"
        placeholder="Search"
        maxlength="${MAX_FIND}"
        autocomplete="off"
        spellcheck="false"
        aria-keyshortcuts="Control+K"
      /><kbd class="scripted-only" aria-hidden="true">Ctrl K</kbd>
    </form>
    <a class="find-link" href="${path}" aria-label="Search everything">${icon('search')}</a>`

/** The dialog, empty: `palette.js` fills it. */
const renderFindDialog = (path: string): Html =>
  html`<dialog id="palette" aria-label="Search everything">
    <form action="${path}" role="search">
      <input
        type="text"
        name="q"
        role="combobox"
        aria-label="Search everything"
        aria-expanded="false"
        aria-controls="palette-list"
        aria-autocomplete="list"
        placeholder="MAC, serial number, name, label, image, setting or action"
        maxlength="${MAX_FIND}"
        autocomplete="off"
        spellcheck="false"
      />
    </form>
    <div
      id="palette-list"
      role="listbox"
      aria-label="Found"
      data-recent="Recent"
      data-none="Nothing found."
      data-found="{count} found"
    ></div>
  </dialog>`

type SideLink = Omit<Section, 'key'> & Partial<Pick<Section, 'key'>>

const ACCOUNT: SideLink = { href: '/ui/account', title: 'Account', icon: 'account' }

const renderAccount = (
  { account: href = ACCOUNT.href }: LayoutDependencies,
  view: PageView,
): Html =>
  html`${renderLink({ ...ACCOUNT, href, title: view.who?.name ?? ACCOUNT.title }, view)}
  ${view.who?.sees ? html`<span class="small dim">${view.who.sees}</span>` : null}`

const renderLink = (link: SideLink, view: PageView): Html =>
  html`<a
    href="${link.href}"
    ${attributes({ 'aria-current': currentOf(link, view), 'data-key': link.key ?? null })}
    >${icon(link.icon)}<span>${link.title}</span>${renderCount(link.icon, view)}</a
  >`

/** `true`: a page of it is shown, but not its own. */
function currentOf(link: Pick<Section, 'href' | 'tabs'>, { section, here }: PageView) {
  if (!holds(link, section)) return null
  return link.href === section && here.split('?')[0] === link.href ? 'page' : 'true'
}

/** The section is known by its icon: its address is another one on the pages of the cache. */
function renderCount(name: IconName, { alarms, waiting = 0, batches = 0 }: PageView): Content {
  const [count, title] =
    name === 'events'
      ? [alarms, 'Events that need attention']
      : name === 'batches'
        ? [batches, 'Batches in progress']
        : [name === 'image' ? waiting : 0, 'Captured images to review']
  return count === 0 ? null : html`<span class="count" title="${title}">${count}</span>`
}

/** The tabs of the section, where it has several. */
function renderTabs(nav: readonly Section[], view: PageView): Content {
  const section = nav.find((each) => holds(each, view.section))
  const { tabs = [] } = section ?? {}
  return tabs.length < 2
    ? null
    : html`<nav class="tabs" aria-label="${section?.title}">
        ${tabs.map(
          (tab) =>
            html`<a href="${tab.href}" ${attributes({ 'aria-current': currentOf(tab, view) })}
              >${tab.title}</a
            >`,
        )}
      </nav>`
}

function renderMain(nav: readonly Section[], view: PageView): Html {
  const { title, heading = title, count, learn, trail, updates, actions, messages, body } = view
  const stream = updates === undefined ? {} : { 'hx-ext': 'sse,morph', 'sse-connect': updates }
  return html`<main id="content" tabindex="-1" ${attributes(stream)}>
    ${renderTabs(view.nav ?? nav, view)}
    ${trail === undefined ? null : html`<p class="trail">${trail}</p>`}
    <div class="top">
      <h1>${heading}${count === undefined ? null : html` <span class="count">${count}</span>`}</h1>
      ${view.edit}
      <div class="actions">
        ${
          learn === undefined
            ? null
            : html`<a class="small" href="/docs/${learn}" aria-label="Learn more: ${title}"
                >Learn more</a
              >`
        }
        ${actions}
      </div>
    </div>
    <div
      id="stale"
      class="banner needs-you"
      role="status"
      data-text="No connection to the server since {time} ({age}). This page may be out of date. Retrying; reload the page if this persists."
      data-held="Nothing is sent while there is no connection to the server. What you typed stays."
      hidden
    ></div>
    ${messages} ${body}
  </main>`
}

const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const COOKIE = 'flasher-theme'
const YEAR_SECONDS = 365 * 24 * 3600

const ICONS: Readonly<Record<Theme, IconName>> = { system: 'system', light: 'sun', dark: 'moon' }

/** `system` where the cookie names none. */
export const readTheme = (event: H3Event): Theme => parseTheme(getCookie(event, COOKIE))

const parseTheme = (text: string | null | undefined): Theme =>
  THEMES.find((theme) => theme === text) ?? 'system'

const THEME = { label: 'Colour scheme', system: 'System', light: 'Light', dark: 'Dark' } as const

/** Three buttons; a script switches without loading the page again. */
const themeSwitch = (selected: Theme, here: string): Html =>
  html`<form method="post" action="/ui/theme" class="theme">
    <input type="hidden" name="back" value="${here}" />
    <div role="group" aria-label="${THEME.label}">
      ${THEMES.map(
        (theme) =>
          html`<button${attributes({
            name: 'theme',
            value: theme,
            title: THEME[theme],
            'aria-label': THEME[theme],
            'aria-pressed': theme === selected ? 'true' : 'false',
          })}>${icon(ICONS[theme])}</button>`,
      )}
    </div>
  </form>`

export const themeRoute: Route = {
  method: 'POST',
  path: '/ui/theme',
  access: { page: 'own' },
  reach: 'shared',
  takes: 'form',
  handle(_event, form) {
    const theme = parseTheme(form.get('theme'))
    const cookie = `${COOKIE}=${theme}; Path=/; Max-Age=${YEAR_SECONDS}; SameSite=Lax`
    return seeOther(localPath(form.get('back')), { 'set-cookie': cookie })
  },
}
