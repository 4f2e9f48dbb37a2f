/** The checklist of the dashboard: what network boot requires, and what this browser has dismissed of it. */
import { getCookie } from 'h3'
import type { ReadinessRow } from '#fleet/boot/rules/readiness.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { badge, card, icon, type Tone } from '#kit/web/ui/elements.ts'
import { postButton } from '#kit/web/ui/fields.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { formAt } from '#server/pages/context-routes.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'

const t = PAGES.dashboard.setup

const PATH = '/ui/dashboard'
const DISMISS_PATH = `${PATH}/setup`
const COOKIE = 'flasher-setup'
const YEAR_SECONDS = 365 * 24 * 3600
/** In place of a row's key: the whole card. */
const CARD = 'card'
const MAX_CHARACTERS = 200

/** With its state: a row that becomes worse is shown again. */
const keyOf = ({ id, state }: ReadinessRow): string => `${id}-${state}`

const readDismissed = ({ event }: CurrentContext): readonly string[] =>
  (getCookie(event, COOKIE) ?? '').slice(0, MAX_CHARACTERS).split('.').filter(Boolean)

export const SETUP_POSTS = [formAt(DISMISS_PATH, dismiss)]

/** A row, the whole card, or shows all again. */
function dismiss(context: CurrentContext, form: URLSearchParams): Answer {
  const given = form.get('dismiss') ?? ''
  const isKey = /^[a-z]{1,20}(-[a-z]{1,20})?$/.test(given)
  const kept = isKey ? [...new Set([...readDismissed(context), given])] : []
  const value = kept.join('.').slice(-MAX_CHARACTERS)
  const age = value === '' ? 0 : YEAR_SECONDS
  return seeOther(PATH, {
    'set-cookie': `${COOKIE}=${value}; Path=${PATH}; Max-Age=${age}; HttpOnly; SameSite=Lax`,
  })
}

const renderDismiss = (key: string, label: string): Html =>
  postButton({ action: DISMISS_PATH, label, values: { dismiss: key } })

/** Folded once everything is ready; after the first flash, ready rows always are. */
export function renderSetup(
  context: CurrentContext,
  rows: readonly ReadinessRow[],
  hasFlashed: boolean,
): Html {
  const dismissed = new Set(readDismissed(context))
  const isDismissed = (row: ReadinessRow) => !row.ok && dismissed.has(keyOf(row))
  const [ready, hidden] = [rows.filter(({ ok }) => ok), rows.filter(isDismissed)]
  const open = rows.filter((row) => !row.ok && !isDismissed(row))
  const again = hidden.length === 0 && !dismissed.has(CARD) ? null : showAgain
  if (dismissed.has(CARD) && open.every(({ state }) => state !== 'attention')) {
    return html`<div id="readiness">${again}</div>`
  }
  if (open.length === 0) {
    return html`<details class="card" id="readiness">
      <summary>${icon('done')} ${t.done}</summary>
      ${renderList([...ready, ...hidden], null)} ${again}
    </details>`
  }
  const isFolded = hasFlashed && ready.length > 0
  return card({
    title: fill(t.title, { done: ready.length, total: rows.length - hidden.length }),
    id: 'readiness',
    aside: renderDismiss(CARD, t.dismissAll),
    body: html`${renderList(isFolded ? open : [...open, ...ready], open[0] ?? null)}
    ${isFolded ? renderFolded(ready) : null} ${again}`,
  })
}

const showAgain = postButton({ action: DISMISS_PATH, label: t.showAgain })

const renderFolded = (ready: readonly ReadinessRow[]): Html =>
  html`<details>
    <summary>${fillCount(t.ready, ready.length)}</summary>
    ${renderList(ready, null)}
  </details>`

const renderList = (rows: readonly ReadinessRow[], next: ReadinessRow | null): Html =>
  html`<ul class="rows setup">
    ${rows.map((row) => renderRow(row, row === next))}
  </ul>`

const TONES = {
  ready: 'done',
  attention: 'needs-you',
  missing: 'needs-you',
  unknown: 'ready',
} as const satisfies Record<ReadinessRow['state'], Tone>

function renderRow(row: ReadinessRow, isNext: boolean): Html {
  const { ok, state, title, text, why, href } = row
  return html`<li>
    <span class="check-state">${badge(TONES[state], t.states[state])}</span>
    <span class="grow"
      ><a href="${href}"><strong>${title}</strong></a> ${text}${
        ok ? null : html`<span class="why dim small">${why}</span>`
      }</span
    >${ok ? null : renderButtons(row, isNext)}
  </li>`
}

const renderButtons = (row: ReadinessRow, isNext: boolean): Content =>
  html`${renderDismiss(keyOf(row), t.dismiss)}<a
      class="${isNext ? 'button primary' : 'button'}"
      href="${row.href}"
      >${row.action}</a
    >`
