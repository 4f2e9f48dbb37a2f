/** The page of the cache: its images with their downloads, unfinished uploads, and free space. */
import type { Space } from '../../services/cache/blob-room.ts'
import type { CacheRow, RowState } from '../../services/cache/cache-rows.ts'
import type { Upload } from '../../services/cache/uploads.ts'
import { blobKeyOf } from '../../core/catalog/cache-entry.ts'
import { renderDuration, renderRate } from '../../core/foundation/rate.ts'
import { renderPartOf, renderSize } from '../../core/foundation/size.ts'
import {
  badge,
  card,
  copyable,
  progress,
  renderBytes,
  tag,
  type Tone,
} from '../../web/ui/elements.ts'
import { postButton } from '../../web/ui/fields.ts'
import { address, html, type Content, type Html } from '../../web/ui/html.ts'
import { refreshEvery } from '../../web/ui/refresh.ts'
import { ACTIONS, numberColumn, renderTable } from '../../web/ui/tables.ts'
import { renderTime, type Clock } from '../../web/ui/times.ts'
import { type AddForm, renderAddCard } from './add-card.ts'
import type { ServerLink } from './messages.ts'

interface ImagesView {
  readonly rows: readonly CacheRow[]
  readonly uploads: readonly Upload[]
  readonly space: Space
  readonly folder: string
  readonly clock: Clock
  readonly form: AddForm
  readonly serverLink: ServerLink
}

export function renderImages(view: ImagesView): Html {
  const { rows, folder, form } = view
  const isBusy = rows.some(({ state, download }) => isMoving(state) || download !== null)
  return html`<div class="stack" ${refreshEvery('images', '/ui/dashboard', isBusy ? 1 : 10)}>
      ${renderSpace(view)} ${renderUploads(view)}
      ${
        rows.length === 0
          ? null
          : renderTable({
              caption: 'Images',
              className: 'images',
              columns: [
                { title: 'State', className: 'state' },
                'Name',
                numberColumn('Size'),
                { title: 'Added', className: 'added' },
                { title: 'SHA-256', className: 'digest' },
                { title: 'Used by', className: 'uses' },
                { ...ACTIONS, className: 'acts' },
              ],
              rows: rows.map((row) => renderRow(row, view)),
            })
      }
      <noscript
        ><p><a href="/ui/dashboard">Reload</a> to update the progress.</p></noscript
      >
    </div>
    ${renderAddCard(form, folder, rows.length === 0)}`
}

const isMoving = (state: RowState) => ['receiving', 'queued', 'checking'].includes(state)

function renderSpace({ rows, space }: ImagesView): Content {
  const { storedBytes, maxBytes, freeBytes } = space
  if (rows.length === 0) return null
  const limit = maxBytes === 0 ? storedBytes + freeBytes : maxBytes
  const used = `${renderPartOf(storedBytes, limit)} used by downloads`
  const disk = `${renderSize(freeBytes)} free on the disk`
  const rule =
    maxBytes === 0
      ? 'Images are only removed manually.'
      : 'When space runs out, the least recently used images are removed, except those in use by machines.'
  return html`<div class="row">
    ${progress(storedBytes, limit, used)}<span class="dim">${disk}. ${rule}</span>
  </div>`
}

/** A browser that uploads sends something every few seconds. */
const QUIET_MS = 15_000

function renderUploads({ uploads, clock }: ImagesView): Content {
  const quiet = uploads.filter(
    ({ isReceiving, touchedAt }) =>
      !isReceiving && clock.now.getTime() - Date.parse(touchedAt) > QUIET_MS,
  )
  if (quiet.length === 0) return null
  return card({
    title: 'Unfinished uploads',
    body: html`<p class="dim">
        To continue one, select the same file below. Uploads are removed after a day.
      </p>
      <ul class="rows">
        ${quiet.map(
          ({ id, name, offset, sizeBytes, touchedAt }) =>
            html`<li>
              <span class="grow">${name}</span>
              ${progress(offset, sizeBytes, renderPartOf(offset, sizeBytes))}
              <span class="when">${renderTime(touchedAt, clock)}</span>
              ${postButton({ action: '/ui/discard', label: 'Discard', values: { id } })}
            </li>`,
        )}
      </ul>`,
  })
}

const STATES: Readonly<Record<RowState, readonly [Tone, string]>> = {
  ready: ['done', 'ready'],
  receiving: ['running', 'downloading'],
  queued: ['armed', 'waiting'],
  checking: ['running', 'checking'],
  failed: ['failed', 'failed'],
  absent: ['ready', 'not here'],
}

function renderRow(row: CacheRow, view: ImagesView): Html {
  const { entry, state, error, addedAt } = row
  const [tone, word] = STATES[state]
  return html`<tr id="image-${Buffer.from(entry.name).toString('hex')}">
    <td>${badge(tone, word)}</td>
    <th scope="row">
      <bdi class="image-name">${entry.name}</bdi>
      <p class="dim small">
        ${entry.format === null ? null : tag(entry.format)}
        ${entry.arch === null ? null : tag(entry.arch)} ${renderOrigin(row, view.clock)}
      </p>
      ${error === null ? null : html`<p class="error">${error}</p>`}
    </th>
    <td class="number" data-label="Size">${renderProgress(row)}</td>
    <td data-label="Added">${addedAt === null ? null : renderTime(addedAt, view.clock)}</td>
    <td data-label="SHA-256">${renderDigest(entry.sha256)}</td>
    <td data-label="Used by">${renderUses(row, view)}</td>
    <td><div class="row">${renderActions(row)}</div></td>
  </tr>`
}

function renderOrigin({ state, kind, usedAt }: CacheRow, clock: Clock): Content {
  if (state !== 'ready') return null
  if (kind === 'file') return 'in the folder'
  const at = usedAt === null ? null : new Date(usedAt).toISOString()
  return html`downloaded${at === null ? null : html`, last used ${renderTime(at, clock)}`}`
}

const renderDigest = (sha256: string | null): Content =>
  sha256 === null
    ? null
    : copyable(sha256, html`<span title="${sha256}">${sha256.slice(0, 12)}</span>`)

/** The number leads to the machines; without a server's report there is none. */
function renderUses({ entry, isPinned, machines }: CacheRow, { serverLink }: ImagesView): Content {
  if (machines === null) return isPinned ? 'machines' : null
  if (machines === 0) return html`<span class="dim">none</span>`
  const words = machines === 1 ? '1 machine' : `${machines} machines`
  const q = `image:${blobKeyOf(entry.src) ?? ''}`
  const href = serverLink(address('/ui/machines', { q }))
  return href === null ? words : html`<a href="${href}">${words}</a>`
}

function renderProgress({ entry, download, progress: part, state }: CacheRow): Content {
  if (state === 'checking' && part !== null) return progress(part, 1, 'reading')
  if (download === null) return entry.size_bytes === null ? null : renderBytes(entry.size_bytes)
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
