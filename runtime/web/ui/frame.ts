/** The frame of every page: side bar, title line, messages, and what the browser needs to know. */
import { attributes, html, type Content, type Html } from './html.ts'
import { icon } from './elements.ts'
import { SPRITE, type IconName } from './sprite.ts'
import { themeSwitch, type Theme } from './theme.ts'

export interface NavLink {
  readonly href: string
  readonly title: string
  readonly icon: IconName
}

interface FrameDependencies {
  readonly version: string
  /** The address of one of our own assets, or of a vendored one. */
  readonly assetUrl: (name: string) => string
  readonly nav: readonly NavLink[]
}

export interface PageView {
  readonly title: string
  /** Instead of the title alone, in the title line. */
  readonly heading?: Content
  readonly count?: Content
  /** Below the title: where we are. */
  readonly trail?: Content
  /** The stream that keeps the page up to date; null: none does. */
  readonly live?: string
  /** Right in the title line: at most one primary button. */
  readonly actions?: Content
  readonly messages?: Content
  readonly body: Content
  /** `href` of the section that is open. */
  readonly section: string
  readonly theme: Theme
  /** Address of the page, for forms that come back to it. */
  readonly here: string
  /** What needs a look, beside Events. */
  readonly alarms: number
}

interface BareView {
  readonly title: string
  readonly body: Content
}

export interface Frame {
  page(view: PageView): string
  /** Without navigation: login, errors of people who are not logged in. */
  bare(view: BareView): string
}

/** No script in attributes, no style of its own, nothing from elsewhere. */
const HTMX_CONFIG = JSON.stringify({
  includeIndicatorStyles: false,
  allowEval: false,
  allowScriptTags: false,
  historyCacheSize: 0,
  selfRequestsOnly: true,
})

const SCRIPTS = ['htmx.min.js', 'sse.min.js', 'idiomorph-ext.min.js'] as const

export function createFrame({ version, assetUrl, nav }: FrameDependencies): Frame {
  const head = (title: string, isScripted: boolean): Html =>
    html`<head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      ${isScripted ? html`<meta name="htmx-config" content="${HTMX_CONFIG}" />` : null}
      <title>${title} · flasher</title>
      <link rel="icon" href="${assetUrl('icon.svg')}" type="image/svg+xml" />
      <link rel="stylesheet" href="${assetUrl('open-props.min.css')}" />
      <link rel="stylesheet" href="${assetUrl('flasher.css')}" />
      <script src="${assetUrl('theme.js')}"></script>
      ${isScripted ? SCRIPTS.map((name) => html`<script src="${assetUrl(name)}" defer></script>`) : null}
      ${isScripted ? html`<script src="${assetUrl('flasher.js')}" type="module"></script>` : null}
    </head>`

  const side = (view: PageView): Html =>
    html`<header class="side">
      <a class="brand" href="/ui/dashboard">flasher</a>
      <nav aria-label="Sections">
        <ul>
          ${nav.map((each) => link(each, view))}
        </ul>
      </nav>
      <div class="foot">
        ${themeSwitch(view.theme, view.here)}
        <a
          href="/ui/account"
          ${attributes({ 'aria-current': view.section === '/ui/account' ? 'page' : null })}
          >${icon('account')}<span>Account</span></a
        >
        <span class="version" title="Version of this server">${version}</span>
      </div>
    </header>`

  return {
    page: (view) =>
      String(
        html`<!doctype html>
          <html
            lang="en"
            ${attributes({ 'data-theme': view.theme === 'system' ? null : view.theme })}
          >
            ${head(view.title, true)}
            <body>
              ${SPRITE}
              <a class="skip" href="#content">Skip to the content</a>
              ${side(view)}
              <main
                id="content"
                tabindex="-1"
                ${attributes(
                  view.live === undefined
                    ? {}
                    : { 'hx-ext': 'sse,morph', 'sse-connect': view.live },
                )}
              >
                ${view.trail === undefined ? null : html`<p class="trail">${view.trail}</p>`}
                <div class="top">
                  <h1>
                    ${view.heading ?? view.title}${
                      view.count === undefined
                        ? null
                        : html` <span class="count">${view.count}</span>`
                    }
                  </h1>
                  <div class="actions">${view.actions}</div>
                </div>
                <div id="stale" class="banner needs-you" role="status" hidden></div>
                ${view.messages} ${view.body}
              </main>
              <dialog id="dialog" aria-labelledby="dialog-title"></dialog>
              <div id="spoken" class="spoken" aria-live="polite"></div>
            </body>
          </html> `,
      ),
    bare: ({ title, body }) =>
      String(
        html`<!doctype html>
          <html lang="en">
            ${head(title, false)}
            <body class="bare">
              ${SPRITE}
              <main id="content">${body}</main>
            </body>
          </html> `,
      ),
  }
}

const link = ({ href, title, icon: name }: NavLink, view: PageView): Html =>
  html`<li>
    <a href="${href}" ${attributes({ 'aria-current': view.section === href ? 'page' : null })}
      >${icon(name)}<span>${title}</span>${
        href.endsWith('/events') && view.alarms > 0
          ? html`<span class="count" title="Events that need a look">${view.alarms}</span>`
          : null
      }</a
    >
  </li>`
