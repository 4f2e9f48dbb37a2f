/** The page of the cache: its images, downloads and free space, and a form to add images. */
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
import { refreshEvery } from '../../web/ui/refresh.ts'
import { ACTIONS, numberColumn, renderTable } from '../../web/ui/tables.ts'
import { renderTime, type Clock } from '../../web/ui/times.ts'

/** What was typed, and why it was refused. */
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
  const isBusy = rows.some(({ state, download }) => isMoving(state) || download !== null)
  return html`<div class="stack" ${refreshEvery('images', '/ui/dashboard', isBusy ? 1 : 10)}>
      ${renderSpace(view)}
      ${
        rows.length === 0
          ? renderNothing(folder)
          : renderTable({
              caption: 'Images',
              columns: ['State', 'Name', numberColumn('Size'), ACTIONS],
              rows: rows.map((row) => renderRow(row, view.clock)),
            })
      }
      <noscript
        ><p><a href="/ui/dashboard">Reload</a> to update the progress.</p></noscript
      >
    </div>
    ${renderAddCard(view)}`
}

const renderNothing = (folder: string): Html =>
  emptyState(
    'No images yet',
    html`Add one by its URL below, or copy image files into this folder: ${copyable(folder)}`,
  )

const isMoving = (state: RowState) => ['receiving', 'queued', 'checking'].includes(state)

const renderAddCard = ({ form }: ImagesView): Html =>
  card({
    title: 'Add an image',
    id: 'add',
    body: html`<form method="post" action="/ui/add">
      ${textField({
        ...typed(form, 'src'),
        label: 'URL',
        type: 'url',
        required: true,
        mono: true,
        placeholder: 'https://…/debian-13.img.zst',
        hint: 'Of an image, or of a catalog (.toml, oras://…/catalog:tag) to add all its images.',
      })}
      ${renderDetails(form)}
      <button class="primary">Add and download</button>
    </form>`,
  })

function renderDetails(form: AddForm): Html {
  const names = ['name', 'sha256']
  const open = names.some((name) => form.values[name] || form.errors[name])
  return html`<details${attributes({ open })}>
    <summary>Name and checksum</summary>
    ${textField({
      ...typed(form, 'name'),
      label: 'Name',
      hint: 'Leave empty to use the last part of the URL.',
    })}
    ${textField({
      ...typed(form, 'sha256'),
      label: 'SHA-256',
      mono: true,
      hint: 'Of the downloaded file. A file with another checksum is discarded.',
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
  const limit = maxBytes === 0 ? storedBytes + freeBytes : maxBytes
  const used = `${renderPartOf(storedBytes, limit)} used by downloads`
  const disk = `${renderSize(freeBytes)} free on the disk`
  const rule =
    maxBytes === 0
      ? 'Images are only removed manually.'
      : 'When space runs out, the least recently used images are removed, except those in use by machines.'
  return html`<div class="row">
    ${progress(storedBytes, limit, used)}<span class="dim">${disk}. ${rule}</span
    ><span class="dim">Files copied into ${copyable(folder)} appear here.</span>
  </div>`
}

const STATES: Readonly<Record<RowState, readonly [Tone, string]>> = {
  ready: ['done', 'ready'],
  receiving: ['running', 'downloading'],
  queued: ['armed', 'waiting'],
  checking: ['running', 'checking'],
  failed: ['failed', 'failed'],
  absent: ['ready', 'not downloaded'],
}

function renderRow(row: CacheRow, clock: Clock): Html {
  const { entry, state, error, isPinned } = row
  const [tone, word] = STATES[state]
  return html`<tr id="image-${Buffer.from(entry.name).toString('hex').slice(0, 64)}">
    <td>${badge(tone, word)}</td>
    <th scope="row">
      ${entry.name} ${entry.format === null ? null : tag(entry.format)}
      ${entry.arch === null ? null : tag(entry.arch)} ${isPinned ? tag('in use') : null}
      ${error === null ? null : html`<p class="error grow">${error}</p>`} ${renderFacts(row, clock)}
    </th>
    <td class="number">${renderProgress(row)}</td>
    <td class="nowrap"><div class="bar">${renderActions(row)}</div></td>
  </tr>`
}

/** Checksum, origin and last use of an image that is ready. */
function renderFacts({ entry, state, kind, usedAt }: CacheRow, clock: Clock): Content {
  if (state !== 'ready' || entry.sha256 === null) return null
  const from = kind === 'file' ? 'copied into the folder' : 'downloaded'
  const at = usedAt === null ? null : new Date(usedAt).toISOString()
  const digest = html`<span title="${entry.sha256}">${entry.sha256.slice(0, 12)}</span>`
  const used = at === null ? null : html`, used ${renderTime(at, clock)}`
  return html`<p class="dim small">${copyable(entry.sha256, digest)} ${from}${used}</p>`
}

function renderProgress({ entry, download, progress: part, state }: CacheRow): Content {
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
