/** The small parts that pages are made of: icons, badges, sizes, copyable texts, banners. */
import { renderSize } from '../../core/foundation/size.ts'
import { attributes, html, type Content, type Html } from './html.ts'
import type { IconName } from './sprite.ts'

/** Decoration: whatever it says stands beside it in words. */
export const icon = (name: IconName): Html =>
  html`<svg class="icon" aria-hidden="true"><use href="#i-${name}" /></svg>`

/** The five states, and amber for what waits for a person. */
export type Tone = 'ready' | 'armed' | 'running' | 'done' | 'failed' | 'needs-you'

const WORDS: Readonly<Record<Tone, string>> = {
  ready: 'ready',
  armed: 'armed',
  running: 'running',
  done: 'done',
  failed: 'failed',
  'needs-you': 'needs you',
}

/** A state by shape, word and colour. */
export const badge = (tone: Tone, word: string = WORDS[tone]): Html =>
  html`<span class="badge ${tone}">${icon(tone)}${word}</span>`

export const tag = (text: string): Html => html`<span class="tag">${text}</span>`

const GIB = 2 ** 30

/** Bytes in decimal units; in binary units and exactly on hover. */
export function renderBytes(bytes: number | null, unknown = '–'): Html {
  if (bytes === null) return html`<span class="dim">${unknown}</span>`
  const binary =
    bytes >= GIB ? `${(bytes / GIB).toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(2)} MiB`
  return html`<data value="${bytes}" title="${binary} (${bytes} bytes)">${renderSize(bytes)}</data>`
}

/** Monospace, selected whole by one click; the button is shown where a script can copy. */
export const copyable = (text: string, shown: Content = text): Html =>
  html`<span class="copyable"><code>${shown}</code>${copyButton(text)}</span>`

const copyButton = (text: string): Html =>
  html`<button
    type="button"
    class="copy"
    data-copy="${text}"
    title="Copy"
    aria-label="Copy ${text.length > 40 ? 'this' : text}"
  >
    ${icon('copy')}
  </button>`

/** A block of text to copy: a script, a configuration. It can be scrolled by keyboard. */
export const copyBlock = (text: string, label: string): Html =>
  html`<div class="copyable block">
    <pre tabindex="0" aria-label="${label}"><code>${text}</code></pre>
    ${copyButton(text)}
  </div>`

/** What happened, to what, and what now. */
export const banner = (tone: 'done' | 'failed' | 'needs-you' | 'ready', content: Content): Html =>
  html`<div class="banner ${tone}" role="${tone === 'failed' ? 'alert' : 'status'}">
    ${icon(tone)}
    <div>${content}</div>
  </div>`

/** Nothing is here yet: the one next step. */
export const emptyState = (title: string, text: Content, action?: Content): Html =>
  html`<div class="empty">
    <h2>${title}</h2>
    <p>${text}</p>
    ${action}
  </div>`

interface Card {
  readonly title?: Content
  readonly id?: string
  /** Beside the title. */
  readonly aside?: Content
  readonly body: Content
  readonly wide?: boolean
}

export const card = ({ title, id, aside, body, wide = false }: Card): Html =>
  html`<section class="card${wide ? ' wide' : ''}" ${attributes({ id })}>
    ${
      title === undefined
        ? null
        : html`<header>
            <h2>${title}</h2>
            ${aside}
          </header>`
    }${body}
  </section>`

/** Names and values in two columns; rows without a value are left out. */
export const factList = (rows: readonly (readonly [string, Content])[]): Html =>
  html`<dl class="facts">
    ${rows.map(([name, value]) =>
      value === null || value === undefined || value === ''
        ? null
        : html`<dt>${name}</dt>
            <dd>${value}</dd>`,
    )}
  </dl>`

/** A bar with its words; without a total it only moves. */
export const progress = (done: number | null, total: number | null, words: string): Html =>
  done === null || total === null || total <= 0
    ? html`<span class="bar"
        ><progress aria-label="${words}"></progress><span>${words}</span></span
      >`
    : html`<span class="bar"
        ><progress max="${total}" value="${Math.min(done, total)}" aria-label="${words}"></progress
        ><span>${words}</span></span
      >`

/** Keeps both ends: serials and file names differ at either. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text
  const tail = Math.floor((most - 1) / 2)
  return `${text.slice(0, most - 1 - tail)}…${text.slice(text.length - tail)}`
}

/** Shortened in the middle by as much as the place needs; the end tells most file names apart. */
export function middle(text: string): Content {
  const at = text.length - Math.min(8, Math.floor(text.length / 2))
  return html`<span class="middle" title="${text}"
    ><span>${text.slice(0, at)}</span><span>${text.slice(at)}</span></span
  >`
}
