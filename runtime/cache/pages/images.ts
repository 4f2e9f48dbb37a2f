/** The page of the cache: what it holds, what is on its way, how much space is left, and adding more. */
import type { Space } from '../../services/cache/blob-room.ts'
import type { CacheRow, RowState } from '../../services/cache/cache-rows.ts'
import { renderDuration, renderRate } from '../../core/foundation/rate.ts'
import { renderPartOf, renderSize } from '../../core/foundation/size.ts'
import {
  badge,
  card,
  copyable,
  emptyState,
  progress,
  renderBytes,
  tag,
  type Tone,
} from '../../web/ui/elements.ts'
import { postButton, textField } from '../../web/ui/fields.ts'
import { address, attributes, html, type Content, type Html } from '../../web/ui/html.ts'
import { renderTime, type Clock } from '../../web/ui/times.ts'

/** What was typed, and what was wrong with it. */
export interface AddForm {
  readonly values: Readonly<Record<string, string>>
  /** By field. */
  readonly errors: Readonly<Record<string, string>>
}

interface ImagesView {
  readonly rows: readonly CacheRow[]
  readonly space: Space
  readonly folder: string
  readonly clock: Clock
  readonly form: AddForm
}

export const EMPTY_FORM: AddForm = { values: {}, errors: {} }

export function renderImages(view: ImagesView): Html {
  const { rows, folder } = view
  return html`<div id="images" class="stack" ${attributes(refreshing(rows))}>
      ${renderSpace(view)} ${rows.length === 0 ? renderNothing(folder) : renderTable(view)}
      <noscript
        ><p><a href="/ui/dashboard">Load the page anew</a> to see how far it is.</p></noscript
      >
    </div>
    ${renderAddCard(view)}`
}

const renderNothing = (folder: string): Html =>
  emptyState(
    'No images yet',
    html`Add one by its address below, or copy image files into this folder: ${copyable(folder)}`,
  )

/** Often while something happens, seldom otherwise; without a script the page is loaded by hand. */
const refreshing = (rows: readonly CacheRow[]) => ({
  'hx-get': '/ui/dashboard',
  'hx-trigger': rows.some(({ state, download }) => isMoving(state) || download !== null)
    ? 'every 1s'
    : 'every 10s',
  'hx-select': '#images',
  'hx-target': '#images',
  'hx-ext': 'morph',
  'hx-swap': 'morph:outerHTML',
})

const isMoving = (state: RowState) => ['receiving', 'queued', 'checking'].includes(state)

const renderAddCard = ({ form }: ImagesView): Html =>
  card({
    title: 'Add an image',
    id: 'add',
    body: html`<form method="post" action="/ui/add">
      ${textField({
        ...typed(form, 'src'),
        label: 'Address',
        type: 'url',
        required: true,
        mono: true,
        placeholder: 'https://…/debian-13.img.zst',
        hint: 'Of an image, or of a catalog (.toml, oras://…/catalog:tag), whose images are then listed.',
      })}
      ${renderDetails(form)}
      <button class="primary">Add and download</button>
    </form>`,
  })

function renderDetails(form: AddForm): Html {
  const names = ['name', 'sha256']
  const open = names.some((name) => form.values[name] || form.errors[name])
  return html`<details${attributes({ open })}>
    <summary>Name and digest</summary>
    ${textField({
      ...typed(form, 'name'),
      label: 'Name',
      hint: 'Else the last part of the address.',
    })}
    ${textField({
      ...typed(form, 'sha256'),
      label: 'SHA-256',
      mono: true,
      hint: 'Of the file as it is downloaded. With another one nothing of it is offered.',
    })}
  </details>`
}

const typed = ({ values, errors }: AddForm, name: string) => ({
  name,
  value: values[name] ?? '',
  error: errors[name] ?? null,
})

function renderSpace({ space, folder }: ImagesView): Html {
  const { storedBytes, maxBytes, freeBytes } = space
  const most = maxBytes === 0 ? storedBytes + freeBytes : maxBytes
  const words = `${renderPartOf(storedBytes, most)} used by downloads`
  const disk = `${renderSize(freeBytes)} free on the disk`
  const rule =
    maxBytes === 0
      ? 'Nothing is removed by itself.'
      : 'What was not used for longest goes when room is needed; images that machines are bound to stay.'
  return html`<div class="row">
    ${progress(storedBytes, most, words)}<span class="dim">${disk}. ${rule}</span
    ><span class="dim">Files copied into ${copyable(folder)} appear here.</span>
  </div>`
}

const renderTable = (view: ImagesView): Html =>
  html`<div class="table">
    <table>
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Name</th>
          <th scope="col" class="number">Size</th>
          <th scope="col"><span class="spoken">Actions</span></th>
        </tr>
      </thead>
      <tbody>
        ${view.rows.map((row) => renderRow(row, view.clock))}
      </tbody>
    </table>
  </div>`

const STATES: Readonly<Record<RowState, readonly [Tone, string]>> = {
  ready: ['done', 'ready'],
  receiving: ['running', 'downloading'],
  queued: ['armed', 'waiting'],
  checking: ['running', 'checking'],
  failed: ['failed', 'failed'],
  absent: ['ready', 'not here'],
}

function renderRow(row: CacheRow, clock: Clock): Html {
  const { entry, state, error, isPinned } = row
  const [tone, word] = STATES[state]
  return html`<tr id="image-${Buffer.from(entry.name).toString('hex').slice(0, 64)}">
    <td>${badge(tone, word)}</td>
    <th scope="row">
      ${entry.name} ${entry.format === null ? null : tag(entry.format)}
      ${entry.arch === null ? null : tag(entry.arch)} ${isPinned ? tag('bound') : null}
      ${error === null ? null : html`<p class="error grow">${error}</p>`} ${renderFacts(row, clock)}
    </th>
    <td class="number">${renderHowFar(row)}</td>
    <td class="nowrap"><div class="bar">${renderActions(row)}</div></td>
  </tr>`
}

/** What is known of the bytes that are here. */
function renderFacts({ entry, state, kind, usedAt }: CacheRow, clock: Clock): Content {
  if (state !== 'ready' || entry.sha256 === null) return null
  const from = kind === 'file' ? 'dropped into the folder' : 'downloaded'
  const at = usedAt === null ? null : new Date(usedAt).toISOString()
  const digest = html`<span title="${entry.sha256}">${entry.sha256.slice(0, 12)}</span>`
  const used = at === null ? null : html`, used ${renderTime(at, clock)}`
  return html`<p class="dim small">${copyable(entry.sha256, digest)} ${from}${used}</p>`
}

function renderHowFar({ entry, download, progress: part, state }: CacheRow): Content {
  if (state === 'checking' && part !== null) return progress(part, 1, 'reading')
  if (download === null) return renderBytes(entry.size_bytes)
  const { growth, rate, eta } = download
  const amount =
    growth.total === null ? renderSize(growth.bytes) : renderPartOf(growth.bytes, growth.total)
  const speed = rate > 0 ? `, ${renderRate(rate)}` : ''
  const left = eta === null ? '' : `, ${renderDuration(eta)} left`
  return progress(growth.bytes, growth.total, `${amount}${speed}${left}`)
}

function renderActions({ entry, kind, state, download }: CacheRow): Content {
  const values = { name: entry.name }
  const remove = html`<a class="button danger" href="${address('/ui/remove', values)}">Remove</a>`
  if (download !== null)
    return [postButton({ action: '/ui/cancel', label: 'Cancel', values }), remove]
  if (kind === 'file') return remove
  const label = state === 'ready' ? 'Download again' : 'Download'
  return [postButton({ action: '/ui/fetch', label, values }), remove]
}
