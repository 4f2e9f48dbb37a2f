/** The small parts that pages are made of: icons, badges, sizes, copyable texts, banners, parts that reload themselves. */
import { renderDiskSize, renderMemory, renderSize } from '#kit/foundation/size.ts'
import { attributes, type Content, html, type Html, trusted } from './html.ts'

/** It is decoration only: a text beside it says the same. */
export const icon = (name: IconName): Html =>
  html`<svg class="icon" aria-hidden="true"><use href="#i-${name}" /></svg>`

/** The states of machines and jobs, and amber for what a person must look at. */
export type Tone =
  | 'ready'
  | 'armed'
  | 'paused'
  | 'capture'
  | 'once'
  | 'running'
  | 'done'
  | 'failed'
  | 'needs-you'

export const badge = (tone: Tone, word: string): Html =>
  html`<span class="badge ${tone}">${icon(tone)}${word}</span>`

export const tag = (text: string): Html => html`<span class="tag">${text}</span>`

const GIB = 2 ** 30

/** In decimal units, and in binary units and exactly on hover; null is `unknown`. */
export const renderBytes = (bytes: number | null, unknown = '–'): Html =>
  bytes === null ? html`<span class="dim">${unknown}</span>` : withHover(bytes, renderSize(bytes))

export const renderDiskBytes = (bytes: number): Html => withHover(bytes, renderDiskSize(bytes))

export const renderMemoryBytes = (bytes: number): Html =>
  html`<data value="${bytes}" title="${bytes} bytes">${renderMemory(bytes)}</data>`

function withHover(bytes: number, text: string): Html {
  const binary =
    bytes >= GIB ? `${(bytes / GIB).toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(2)} MiB`
  return html`<data value="${bytes}" title="${binary} (${bytes} bytes)">${text}</data>`
}

/** One click selects it whole; the button is shown where a script can copy. */
export const copyable = (text: string, shown: Content = text): Html =>
  html`<span class="copyable"><code>${shown}</code>${copyButton(text)}</span>`

const copyButton = (text: string): Html =>
  html`<button
    type="button"
    class="copy"
    data-copy="${text}"
    title="Copy"
    aria-label="${text.length > 40 ? 'Copy this' : `Copy ${text}`}"
  >
    ${icon('copy')}
  </button>`

export const copyBlock = (text: string, label: string): Html =>
  html`<div class="copyable block">
    <pre tabindex="0" aria-label="${label}"><code>${text}</code></pre>
    ${copyButton(text)}
  </div>`

export const banner = (tone: 'done' | 'failed' | 'needs-you' | 'ready', content: Content): Html =>
  html`<div class="banner ${tone}" role="${tone === 'failed' ? 'alert' : 'status'}">
    ${icon(tone)}
    <div>${content}</div>
  </div>`

export const emptyState = (title: string, text: Content, action?: Content): Html =>
  html`<div class="empty">
    <h2>${title}</h2>
    <p>${text}</p>
    ${action}
  </div>`

interface Card {
  readonly title?: Content
  readonly id?: string
  /** What stands beside the title. */
  readonly aside?: Content
  readonly body: Content
}

export const card = ({ title, id, aside, body }: Card): Html =>
  html`<section class="card" ${attributes({ id })}>
    ${
      title === undefined
        ? null
        : html`<header>
            <h2>${title}</h2>
            ${aside}
          </header>`
    }${body}
  </section>`

interface FoldedCard extends Card {
  readonly title: Content
  /** How it stands, in one line beside the title while it is folded. */
  readonly about: Content
  readonly isOpen: boolean
}

/** Its head opens it, without a script too; a link to its `id` does so as well. */
export const foldedCard = ({ title, id, about, isOpen, body }: FoldedCard): Html =>
  html`<details class="card fold" ${attributes({ open: isOpen })}>
    <summary>
      <h2>${title}</h2>
      <span class="holds small dim">${about}</span>
    </summary>
    <div class="folded" ${attributes({ id })}>${body}</div>
  </details>`

export const factList = (rows: readonly (readonly [string, Content])[]): Html =>
  html`<dl class="facts">
    ${rows.map(([name, value]) =>
      value === null || value === undefined || value === ''
        ? null
        : html`<dt>${name}</dt>
            <dd>${value}</dd>`,
    )}
  </dl>`

/** Without a total it is indeterminate. */
export function progress(done: number | null, total: number | null, label: string): Html {
  const isKnown = done !== null && total !== null && total > 0
  const amounts = isKnown ? { max: total, value: Math.min(done, total) } : {}
  return html`<span class="bar"
    ><progress${attributes({ ...amounts, 'aria-label': label })}></progress
    ><span>${label}</span></span
  >`
}

/** Keeps both ends: serials and file names differ at either end. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text
  const tail = Math.floor((most - 1) / 2)
  return `${text.slice(0, most - 1 - tail)}…${text.slice(text.length - tail)}`
}

/**
 * The browser shortens it in the middle, as far as needed; the end distinguishes most file names
 * and serial numbers.
 */
export function middle(text: string): Content {
  const half = text.length - Math.min(8, Math.floor(text.length / 2))
  // An emoji would be lost if it were cut between its two halves.
  const at = /[\udc00-\udfff]/.test(text.charAt(half)) ? half - 1 : half
  return html`<span class="middle" title="${text}"
    ><span>${text.slice(0, at)}</span><span>${text.slice(at)}</span></span
  >`
}

export const renderWays = (ways: readonly (readonly [title: string, body: Content])[]): Html =>
  html`<div class="ways">
    ${ways.map(
      ([title, body]) =>
        html`<section>
          <h3>${title}</h3>
          ${body}
        </section>`,
    )}
  </div>`

export const renderJumps = (parts: readonly (readonly [title: string, href: string])[]): Html =>
  html`<nav class="row small" aria-label="On this page">
    ${parts.map(([title, href]) => html`<a href="${href}">${title}</a>`)}
  </nav>`

// The icons: each page contains them once and refers to them by name.

/** Lines on a grid of 16, styled by the stylesheet; states differ in shape, not in colour alone. */
const SHAPES = {
  ready: '<circle cx="8" cy="8" r="4.5"/>',
  armed: '<path d="M8 2.5 14 13H2z" fill="currentColor"/>',
  paused: '<path d="M5 3v10M11 3v10" stroke-width="2.6"/>',
  once: '<path d="M2.5 8a5.5 5.5 0 1 1 1.8 4M2.2 9.5l.3-1.6"/><path d="M6.8 6.2 8.3 5v6"/>',
  capture: '<path d="M8 9.5v-8m0 0L5.2 4.3M8 1.5l2.8 2.8"/><path d="M2 10v3.5h12V10"/>',
  running: '<path d="M8 1.8a6.2 6.2 0 1 1-6.2 6.2"/><path d="M8 5v3l2 2"/>',
  done: '<path d="m2.5 8.5 3.5 4 7.5-9" stroke-width="2.2"/>',
  failed:
    '<path d="M5.3 1.5h5.4l3.8 3.8v5.4l-3.8 3.8H5.3l-3.8-3.8V5.3z" fill="currentColor"/><path d="m5.5 5.5 5 5m0-5-5 5" stroke="var(--surface)"/>',
  'needs-you':
    '<path d="m8 1.2 6.8 6.8L8 14.8 1.2 8z" fill="currentColor"/><path d="M8 4.6v4m0 2v.6" stroke="var(--surface)" stroke-width="1.8"/>',
  copy: '<rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M3.5 10.5h-1v-8h8v1"/>',
  lock: '<rect x="3" y="7" width="10" height="7" rx="1.5"/><path d="M5 7V5a3 3 0 0 1 6 0v2"/>',
  search: '<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.5 3.5"/>',
  disk: '<rect x="2" y="4" width="12" height="8" rx="1.5"/><path d="M10.5 9.5h1"/>',
  image: '<path d="M4 1.5h5.5L12.5 4.5v10H4z"/><path d="M9.5 1.5v3h3"/>',
  dashboard: '<path d="M2 2h5v6H2zM9 2h5v4H9zM2 10h5v4H2zM9 8h5v6H9z"/>',
  machines:
    '<rect x="2" y="2.5" width="12" height="4.5" rx="1"/><rect x="2" y="9" width="12" height="4.5" rx="1"/><path d="M4.5 4.8h.5m-.5 6.4h.5"/>',
  batches: '<path d="m8 2 6 3-6 3-6-3z"/><path d="m2 8 6 3 6-3"/><path d="m2 11 6 3 6-3"/>',
  runs: '<path d="M8 1.5v7m0 0L5.2 5.7M8 8.5l2.8-2.8"/><path d="M2 10v3.5h12V10"/>',
  netboot:
    '<circle cx="8" cy="3.5" r="1.8"/><circle cx="3.5" cy="12.5" r="1.8"/><circle cx="12.5" cy="12.5" r="1.8"/><path d="M8 5.5V8M3.5 10.5V8h9v2.5"/>',
  events: '<path d="M5.5 3.5H14M5.5 8H14m-8.5 4.5H14M2 3.5h.8M2 8h.8M2 12.5h.8"/>',
  settings:
    '<path d="M2 4.5h6m3 0h3M2 11.5h3m3 0h6"/><circle cx="9.5" cy="4.5" r="1.6"/><circle cx="6.5" cy="11.5" r="1.6"/>',
  account: '<circle cx="8" cy="5.2" r="2.7"/><path d="M2.8 14a5.2 5.2 0 0 1 10.4 0"/>',
  sun: '<circle cx="8" cy="8" r="2.8"/><path d="M8 1.5v1.5m0 10v1.5M1.5 8H3m10 0h1.5M3.4 3.4l1 1m7.2 7.2 1 1m0-9.2-1 1m-7.2 7.2-1 1"/>',
  moon: '<path d="M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3z"/>',
  system:
    '<circle cx="8" cy="8" r="5.8"/><path d="M8 2.2v11.6a5.8 5.8 0 0 0 0-11.6z" fill="currentColor"/>',
} as const

export type IconName = keyof typeof SHAPES

/** The first element of the body; invisible. */
export const SPRITE: Html = trusted(
  `<svg class="sprite" aria-hidden="true" width="0" height="0">${Object.entries(SHAPES)
    .map(([name, shape]) => `<symbol id="i-${name}" viewBox="0 0 16 16">${shape}</symbol>`)
    .join('')}</svg>`,
)

const morph = (id: string, href: string) => ({
  id,
  'hx-ext': 'morph',
  'hx-get': href,
  'hx-select': `#${id}`,
  'hx-swap': 'morph:outerHTML',
})

/**
 * Reloads a part on every change of a machine, but at most once in `everyMs` (`news.js`); also
 * every `seconds`, where other things are shown as well.
 */
export const refreshOnNews = (
  id: string,
  href: string,
  everyMs: number,
  seconds: number | null = null,
): Html =>
  attributes({
    ...morph(id, href),
    'hx-trigger': seconds === null ? 'flasher:news' : `flasher:news, every ${seconds}s`,
    'data-every': everyMs,
  })

/** Null: never. */
export const refreshEvery = (id: string, href: string, seconds: number | null): Html =>
  attributes(seconds === null ? { id } : { ...morph(id, href), 'hx-trigger': `every ${seconds}s` })
