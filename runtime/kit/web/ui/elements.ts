/** The small parts that pages are made of: icons, badges, sizes, copyable texts, banners. */
import { renderDiskSize, renderMemory, renderSize } from '#kit/foundation/size.ts'
import { attributes, html, type Content, type Html } from './html.ts'
import type { IconName } from './sprite.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'

const t = PAGES.frame

/** It is decoration only: a text beside it says the same. */
export const icon = (name: IconName): Html =>
  html`<svg class="icon" aria-hidden="true"><use href="#i-${name}" /></svg>`

/** The states of machines and jobs, and amber for what a person must look at. */
export type Tone = 'ready' | 'armed' | 'capture' | 'running' | 'done' | 'failed' | 'needs-you'

export const badge = (tone: Tone, word: string = t.states[tone]): Html =>
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
    title="${t.copy.title}"
    aria-label="${text.length > 40 ? t.copy.long : fill(t.copy.text, { text })}"
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
 * and serial numbers. `full` is shown on hover: the text before a suffix was taken off.
 */
export function middle(text: string, full = text): Content {
  const half = text.length - Math.min(8, Math.floor(text.length / 2))
  // An emoji would be lost if it were cut between its two halves.
  const at = /[\udc00-\udfff]/.test(text.charAt(half)) ? half - 1 : half
  return html`<span class="middle" title="${full}"
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

export const renderTabs = (tabs: readonly (readonly [title: string, href: string])[]): Html =>
  html`<nav class="tabs" aria-label="${t.tabs}">
    ${tabs.map(([title, href]) => html`<a href="${href}">${title}</a>`)}
  </nav>`
