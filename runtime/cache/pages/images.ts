/** The page of the cache: its images with their downloads, unfinished uploads, and free space. */
import type { CacheSpace } from '#cache/blobs/blobs.ts'
import type { CacheRow, ImageState } from '#cache/store/cache-rows.ts'
import type { Capture } from '#cache/captures/captures.ts'
import type { Upload } from '#cache/arrivals/arrivals.ts'
import {
  blobKeyOf,
  type ImageUser,
  MAX_NAMED_USERS,
  MAX_PART_BYTES,
} from '#engine/catalog/rules/cache-entry.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration, renderRate, renderPartOf, renderSize } from '#kit/foundation/size.ts'
import {
  badge,
  card,
  copyable,
  emptyState,
  factList,
  progress,
  renderBytes,
  tag,
  type Tone,
  banner,
  copyBlock,
  renderWays,
  refreshEvery,
} from '#kit/web/ui/elements.ts'
import { postButton, checkField, hidden, textField, renderUploadForm } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, type Content, type Html, attributes } from '#kit/web/ui/html.ts'
import {
  renderSearch,
  type ListQuery,
  ACTIONS,
  numberColumn,
  renderTable,
} from '#kit/web/ui/tables.ts'
import { selectImages } from '#cache/rules/image-list.ts'
import { HOME } from './layout.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { renderCaptures } from '#cache/captures/capture-view.ts'
import { fill, fillCount, upperFirst } from '#kit/foundation/text.ts'
import type { Imported } from '#cache/store/image-cache.ts'
import { IMAGE_ENDINGS, IMAGE_FORMATS, type ImageFormat } from '#appliance/disk-images.ts'
import { isOutOfOrder, isStoredRaw } from '#engine/image/rules/format.ts'

const list = (isMeant: (format: ImageFormat) => boolean): string =>
  IMAGE_FORMATS.filter(isMeant)
    .map((format) => `.${format}`)
    .join(', ')

const ENDINGS = {
  raw: list(isStoredRaw),
  compressed: list((format) => !isStoredRaw(format) && !isOutOfOrder(format)),
  others: list(isOutOfOrder),
}

export interface AddForm {
  readonly values: Readonly<Record<string, string>>
  readonly errors: Readonly<Record<string, string>>
}

export const EMPTY_FORM: AddForm = { values: {}, errors: {} }

const renderAddCard = (form: AddForm, folder: string, isFirst: boolean): Html =>
  card({
    title: isFirst ? 'No images yet: add the first one' : 'Add an image',
    id: 'add',
    body: renderWays([
      ['From an address', html`${renderAddressForm(form)}${isFirst ? EXAMPLE : null}`],
      ['From your computer', renderUpload()],
      ['Copy it into the folder', renderCopy(folder)],
    ]),
  })

const DEBIAN = 'https://cloud.debian.org/images/cloud/trixie/latest/debian-13-generic-amd64.qcow2'

const EXAMPLE: Html = html`<p class="hint">
    Nothing at hand? Debian has an image for PCs: <code>${DEBIAN}</code>
  </p>
  ${postButton({ action: '/ui/add', label: 'Add Debian 13', values: { src: DEBIAN } })}`

const renderCopy = (folder: string): Html =>
  html`<p>On the host of the cache:</p>
    ${copyBlock(
      `cp debian-13.img.zst ${quote(folder)}/
`,
      'A command that copies an image',
    )}
    <p class="hint">
      ${fillHtml('The image appears here a few seconds after the copy ends. It is verified if a {sums} file lies beside it.', { sums: html`<code>.sha256</code>` })}
    </p>`

const renderAddressForm = (form: AddForm): Html =>
  html`<form method="post" action="/ui/add">
    ${textField({
      ...typed(form, 'src'),
      label: 'URL',
      type: 'url',
      required: true,
      mono: true,
      placeholder: 'https://…/debian-13.img.zst',
      hint: 'An image, or a catalog of images (.toml, oras://…/catalog:tag).',
    })}
    ${renderDetails(form)}
    <button class="primary">Add and download</button>
  </form>`

function renderDetails(form: AddForm): Html {
  const names = ['name', 'sha256', 'index_sha256', 'any_content']
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
    ${textField({
      ...typed(form, 'index_sha256'),
      label: 'SHA-256 of the frame index',
      mono: true,
      hint: 'Only for an .img.zst in frames. Leave empty: the cache computes it after the download.',
    })}
    ${checkField({
      name: 'any_content',
      label: 'Offer it even if it does not look like a disk image',
      checked: form.values['any_content'] === '1',
      hint: 'Otherwise a web page, a text or an archive is refused.',
    })}
  </details>`
}

const typed = ({ values, errors }: AddForm, name: string) => ({
  name,
  value: values[name] ?? '',
  error: errors[name] ?? null,
})

const renderUpload = (): Html =>
  renderUploadForm({
    kind: { name: 'image', partBytes: MAX_PART_BYTES },
    done: '/ui/dashboard?uploaded=',
    id: 'image-file',
    label: 'Image file',
    hint: fill(
      'A raw image ({raw}), also compressed ({compressed}), or {others}. If an upload is interrupted, select the file again to continue.',
      ENDINGS,
    ),
    // Browsers look only at what follows the last dot.
    accept: IMAGE_ENDINGS.map((ending) => ending.slice(ending.lastIndexOf('.'))).join(','),
    fields: html`<details>
      <summary>Checksum</summary>
      ${textField({
        name: 'upload-sha256',
        label: 'SHA-256',
        mono: true,
        hint: 'A file with another checksum is discarded.',
      })}
    </details>`,
    button: 'Upload',
    unscripted:
      'Uploading here needs JavaScript. Without it, copy the file into the folder or add it from an address.',
  })

const quote = (path: string): string =>
  /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`

/** The question before an image is removed: what is deleted, and which machines use it. */
export function renderRemoval(
  row: CacheRow,
  users: readonly ImageUser[],
  serverLink: ServerLink,
): Html {
  const { entry, kind, state, isPinned } = row
  const size = entry.size_bytes === null ? '' : ` (${renderSize(entry.size_bytes)})`
  const name = html`<strong>${entry.name}</strong>`
  const image = html`${name}${size}`
  const consequence =
    kind === 'file'
      ? html`The file ${image} will be deleted from the folder.`
      : state === 'ready'
        ? fillHtml(
            '{image} will be removed from the list, and its data from the disk unless another entry shares it.',
            { image },
          )
        : html`${name} will be removed from the list.`
  return card({
    body: html`<p class="sentence">${consequence}</p>
      ${isPinned ? renderUsers(row, users, serverLink) : null}
      <form method="post" action="/ui/remove">
        ${hidden({ name: entry.name })} ${isPinned ? hidden({ force: '1' }) : null}
        <div class="row">
          <a class="button" href="/ui/dashboard">Cancel</a>
          <button class="danger">${isPinned ? 'Remove anyway' : 'Remove image'}</button>
        </div>
      </form>`,
  })
}

const USERS = {
  channel:
    'A channel points to it: machines that are given the channel cannot be flashed without it.',
  some: 'Machines use this image and cannot be flashed without it.',
  count: {
    one: '{count} machine uses this image and cannot be flashed without it.',
    other: '{count} machines use this image and cannot be flashed without it.',
  },
} as const

function renderUsers(
  { entry, machines }: CacheRow,
  users: readonly ImageUser[],
  serverLink: ServerLink,
): Html {
  if (machines === 0) return banner('needs-you', USERS.channel)
  const shown = users.slice(0, MAX_NAMED_USERS)
  const more = (machines ?? shown.length) - shown.length
  return html`${banner('needs-you', machines === null ? USERS.some : fillCount(USERS.count, machines))}
    <ul class="rows">
      ${shown.map(({ mac, name }) => html`<li>${renderLink(serverLink(`/ui/machines/${mac}`), html`<bdi>${printable(name)}</bdi>`)}</li>`)}
      ${more > 0 ? html`<li>${renderLink(serverLink(usersPath(entry)), shown.length === 0 ? 'Show them' : `and ${more} more`)}</li>` : null}
    </ul>`
}

const renderLink = (href: string | null, shown: Content): Content =>
  href === null ? shown : html`<a href="${href}">${shown}</a>`

const usersPath = ({ src }: CacheRow['entry']): string =>
  address('/ui/machines', { q: `image:${blobKeyOf(src) ?? ''}` })

// The result of a form, shown on the page that follows; the address carries only names and numbers.

const MAX_LENGTH = 512

export const countsOf = ({ added, known, flaws }: Imported) => ({
  listed: added.length,
  known: known.length,
  skipped: flaws.length,
})

/** Null: the server's address is unknown. */
type ServerLink = (path: string) => string | null

const MESSAGES = {
  failed: 'Nothing was added: {errors}. {link}',
  form: 'Back to the form',
  uploaded: '{name} was uploaded.',
  removed: '{name} was removed.',
  accepted: '{name} was accepted.',
  rejected: '{name} was rejected and deleted.',
  listed: { one: '1 image of the catalog added', other: '{count} images of the catalog added' },
  known: '{count} already listed',
  skipped: '{count} skipped (see the log)',
  dashboard: 'Back to the dashboard',
  machines: 'Assign it to machines',
} as const

/** Errors are at the top, as the form is below the images. */
export function messagesOf(
  query: URLSearchParams,
  { errors }: AddForm,
  serverLink: ServerLink,
): Content {
  const wrong = Object.values(errors).join('; ')
  return wrong === ''
    ? messageOf(query, serverLink)
    : banner(
        'failed',
        fillHtml(MESSAGES.failed, {
          errors: wrong,
          link: html`<a href="#add">${MESSAGES.form}</a>`,
        }),
      )
}

function messageOf(query: URLSearchParams, serverLink: ServerLink): Content {
  const next = renderNext(serverLink)
  for (const what of ['uploaded', 'accepted', 'removed', 'rejected'] as const) {
    const name = query.get(what)?.slice(0, MAX_LENGTH)
    if (!name) continue
    const words = fillHtml(MESSAGES[what], { name: html`<strong>${name}</strong>` })
    const isGone = what === 'removed' || what === 'rejected'
    return banner('done', isGone ? words : html`${words} ${next}`)
  }
  const listed = query.get('listed')
  return listed === null
    ? null
    : banner('done', html`${renderListed(Number(listed), query)}. ${next}`)
}

function renderNext(serverLink: ServerLink): Content {
  const [dashboard, machines] = [serverLink('/ui/dashboard'), serverLink('/ui/machines')]
  if (dashboard === null || machines === null) return null
  return html`<span class="row next"
    ><a class="button" href="${dashboard}">${MESSAGES.dashboard}</a
    ><a class="button" href="${machines}">${MESSAGES.machines}</a></span
  >`
}

function renderListed(listed: number, query: URLSearchParams): string {
  const [known = 0, skipped = 0] = ['known', 'skipped'].map((name) => Number(query.get(name) ?? 0))
  return [
    fillCount(MESSAGES.listed, listed),
    known ? fill(MESSAGES.known, { count: known }) : '',
    skipped ? fill(MESSAGES.skipped, { count: skipped }) : '',
  ]
    .filter(Boolean)
    .join('; ')
}

/** A failure has its reason in the row. */
const ADDED = {
  ready: 'Downloaded {name}.',
  failed: '{name} was not downloaded.',
  others: 'Downloading {name}. You can leave this page.',
} as const

/** Follows the download. */
function renderAdded({ added, rows, serverLink }: ImagesView): Content {
  const row = rows.find(({ entry }) => entry.name === added)
  if (row === undefined) return null
  const name = html`<a href="#${idOf(row)}"><strong>${added}</strong></a>`
  if (row.state === 'failed') return banner('failed', fillHtml(ADDED.failed, { name }))
  const words = fillHtml(isHere(row) ? ADDED.ready : ADDED.others, { name })
  return banner(isHere(row) ? 'done' : 'ready', html`${words} ${renderNext(serverLink)}`)
}

interface ImagesView {
  readonly rows: readonly CacheRow[]
  readonly uploads: readonly Upload[]
  readonly captures: readonly Capture[]
  readonly space: CacheSpace
  readonly folder: string
  readonly clock: Clock
  readonly form: AddForm
  readonly serverLink: ServerLink
  readonly query: ListQuery
  /** The image that was added just now; null: none. */
  readonly added: string | null
}

export function renderImages(view: ImagesView): Html {
  const { rows, captures, folder, form, clock, query, added } = view
  const here = address(HOME, { ...query, added })
  const isBusy =
    rows.some(({ state, download }) => isMoving(state) || download !== null) ||
    captures.some(({ status }) => status !== 'waiting')
  return html`${rows.length === 0 ? null : renderFilters(view)}
    <div
      class="stack"
      ${attributes({ 'hx-select-oob': rows.length === 0 ? null : '#views:morph' })}
      ${refreshEvery('images', here, isBusy ? 1 : 10)}
    >
      ${renderAdded(view)} ${renderCaptures(captures, clock)} ${renderSpace(view)}
      ${renderUploads(view)} ${rows.length === 0 ? null : renderList(view)}
      <noscript
        ><p><a href="${here}">Reload</a> to update the progress.</p></noscript
      >
    </div>
    ${renderAddCard(form, folder, rows.length === 0)}`
}

const IMAGE_STATES = {
  ready: 'ready',
  receiving: 'downloading',
  queued: 'queued',
  checking: 'checking',
  failed: 'failed',
  absent: 'not downloaded',
} as const

/** Outside of what reloads itself, so that nobody loses what is being typed. */
const renderFilters = ({ rows, query }: ImagesView): Html =>
  renderSearch({
    path: HOME,
    query,
    name: 'q',
    label: 'Search images',
    placeholder: 'Name, format, architecture, address, SHA-256',
    views: [
      ['All', { ...query, state: '' }, rows.length],
      ...STATES.flatMap((state): [string, ListQuery, number][] => {
        const count = rows.filter((row) => row.state === state).length
        return count === 0 ? [] : [[upperFirst(IMAGE_STATES[state]), { ...query, state }, count]]
      }),
    ],
  })

function renderList(view: ImagesView): Html {
  const { query } = view
  const found = selectImages(view.rows, query)
  if (found.length === 0) {
    return emptyState(
      'No matching images',
      'Remove a term or clear the search.',
      html`<a class="button" href="${HOME}">Show all images</a>`,
    )
  }
  return renderTable({
    caption: 'Images',
    className: 'images',
    path: HOME,
    query,
    columns: [
      { key: 'state', title: 'State', className: 'state' },
      { key: 'name', title: 'Name' },
      { ...numberColumn('Size'), key: '-size' },
      { key: '-added', title: 'Added', className: 'added' },
      { key: '-uses', title: 'Used by', className: 'uses' },
      { ...ACTIONS, className: 'acts' },
    ],
    rows: found.map((row) => renderRow(row, view)),
  })
}

const isMoving = (state: ImageState) => ['receiving', 'queued', 'checking'].includes(state)

function renderSpace({ rows, space }: ImagesView): Content {
  const { storedBytes, maxBytes, freeBytes } = space
  if (rows.length === 0) return null
  const here = rows.reduce((sum, row) => sum + (isHere(row) ? (row.entry.size_bytes ?? 0) : 0), 0)
  const words = `${renderSize(here)} of images. ${renderSize(freeBytes)} free.`
  if (maxBytes === 0) return html`<p class="dim">${words}</p>`
  const used = `${renderPartOf(storedBytes, maxBytes)} used by downloads`
  return html`<div class="row">
    <span class="dim">${words}</span> ${progress(storedBytes, maxBytes, used)}
    <span class="dim"
      >When it is full, the least recently used downloads are removed, except those in use by
      machines.</span
    >
  </div>`
}

const isHere = ({ state }: CacheRow): boolean => state === 'ready'

/** A browser that uploads sends a part every few seconds. */
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
        Select the same file below to continue. Unfinished uploads are removed after a day.
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

/** In the order in which they are shown. */
const STATES = [
  'failed',
  'receiving',
  'queued',
  'checking',
  'absent',
  'ready',
] as const satisfies readonly ImageState[]

const TONES: Readonly<Record<ImageState, Tone>> = {
  ready: 'done',
  receiving: 'running',
  queued: 'armed',
  checking: 'running',
  failed: 'failed',
  absent: 'ready',
}

function renderRow(row: CacheRow, view: ImagesView): Html {
  const { entry, state, error, addedAt, movedAt } = row
  return html`<tr id="${idOf(row)}">
    <td>${badge(TONES[state], IMAGE_STATES[state])}</td>
    <th scope="row">
      <bdi class="image-name">${entry.name}</bdi>
      <p class="dim small">
        ${entry.format === null ? null : tag(entry.format)}
        ${entry.arch === null ? null : tag(entry.arch)}
        ${movedAt === null ? null : badge('needs-you', 'newer at its source')}
      </p>
      ${error === null ? null : html`<p class="error">${error}</p>`} ${renderMore(row, view.clock)}
    </th>
    <td class="number" data-label="Size">${renderProgress(row)}</td>
    <td class="nowrap" data-label="Added">
      ${addedAt === null ? null : renderTime(addedAt, view.clock)}
    </td>
    <td class="nowrap" data-label="Used by">${renderUses(row, view)}</td>
    <td><div class="row">${renderActions(row)}</div></td>
  </tr>`
}

const idOf = ({ entry }: CacheRow): string => `image-${Buffer.from(entry.name).toString('hex')}`

function renderMore({ entry, kind, usedAt, lookedAt, movedAt }: CacheRow, clock: Clock): Content {
  const facts: readonly (readonly [string, Content])[] = [
    ['SHA-256', entry.sha256 === null ? null : copyable(entry.sha256)],
    ['Source', kind === 'file' ? null : copyable(entry.src)],
    ['Last used', usedAt === null ? null : renderTime(new Date(usedAt).toISOString(), clock)],
    ['Source checked', lookedAt === null ? null : renderTime(lookedAt, clock)],
    ['Newer version seen', movedAt === null ? null : renderTime(movedAt, clock)],
  ]
  if (facts.every(([, value]) => value === null)) return null
  return html`<details class="small">
    <summary>Details</summary>
    ${factList(facts)}
  </details>`
}

/** Null: no server has reported its machines. */
function renderUses({ entry, isPinned, machines }: CacheRow, { serverLink }: ImagesView): Content {
  if (machines === null) return isPinned ? 'machines' : null
  if (machines === 0 && isPinned) return 'a channel'
  if (machines === 0) return html`<span class="dim">none</span>`
  const words = fillCount({ one: '1 machine', other: '{count} machines' }, machines)
  return renderLink(serverLink(usersPath(entry)), words)
}

function renderProgress({ entry, download, progress: part, state }: CacheRow): Content {
  if (state === 'checking' && part !== null) return progress(part, 1, 'reading')
  if (download === null) return entry.size_bytes === null ? null : renderBytes(entry.size_bytes)
  const { growth, rate, eta } = download
  const amount =
    growth.total === null ? renderSize(growth.bytes) : renderPartOf(growth.bytes, growth.total)
  const values = { amount, rate: renderRate(rate) }
  const label =
    eta !== null
      ? fill('{amount}, {rate}, {time} left', { ...values, time: renderDuration(eta) })
      : rate > 0
        ? fill('{amount}, {rate}', values)
        : amount
  return progress(growth.bytes, growth.total, label)
}

const LABELS: Partial<Readonly<Record<ImageState, string>>> = {
  ready: 'Download again',
  failed: 'Try again',
}

function renderActions({ entry, kind, state, download }: CacheRow): Content {
  const values = { name: entry.name }
  const remove = html`<a class="button" href="${address('/ui/remove', values)}">Remove</a>`
  if (download !== null)
    return [postButton({ action: '/ui/cancel', label: 'Cancel', values }), remove]
  if (kind === 'file') return remove
  const label = LABELS[state] ?? 'Download'
  return [postButton({ action: '/ui/fetch', label, values }), remove]
}
