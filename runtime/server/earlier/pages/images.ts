/** /ui/images: what is in the image folder, and how more comes in. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { IMAGE_ENDINGS } from '#appliance/disk-images.ts'
import { printable } from '#kit/foundation/printable.ts'
import {
  banner,
  card,
  copyBlock,
  emptyState,
  middle,
  renderBytes,
  tag,
} from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { readListQuery, renderSearch, type ListQuery } from '#kit/web/ui/search.ts'
import { ACTIONS, numberColumn, renderTable } from '#kit/web/ui/tables.ts'
import { selectImages, type UsedImage } from '../rules/image-list.ts'
import type { EarlierContext } from './page-context.ts'
import {
  IMAGE_REMOVAL,
  IMAGE_REMOVAL_PATH,
  listUsers,
  renderRemovalButton,
  usersPath,
} from './image-removal.ts'
import type { ImageRow } from '#engine/image/rules/image.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { renderUploadForm } from '#kit/web/ui/upload-form.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.earlier.images
const shared = PAGES.images.search

const ENDINGS = {
  endings: IMAGE_ENDINGS.slice(0, -1).join(', '),
  last: IMAGE_ENDINGS.slice(-1).join(''),
}

const PATH = '/ui/images'

export const IMAGE_PAGES = [pageAt(PATH, show), IMAGE_REMOVAL]

async function show(context: EarlierContext): Promise<Answer> {
  const { shelf } = context.services
  const [images, machines] = [await shelf.list(), await context.site.machines.list()]
  const mayRemove = context.site.mayOpen(context.event, IMAGE_REMOVAL_PATH, 'POST')
  const { baseUrl } = context.contact()
  const rows = images.map((row) => ({ ...row, users: listUsers(machines, row.name).length }))
  const folder = html`<code>${shelf.root}</code>`
  return await context.show({
    title: t.title,
    section: PATH,
    count: images.length,
    messages: html`${context.message()}${renderRemoved(context, images)}`,
    body: html`${
      images.length === 0
        ? emptyState(t.empty.title, fillHtml(t.empty.text, { folder }))
        : renderList(rows, readListQuery(context.query, ['q', 'used', 'sort'], 200), mayRemove)
    }
    ${card({
      title: t.upload.title,
      body: html`${renderUploadForm({
          kind: { name: 'files', to: '/images/' },
          done: '/ui/images?uploaded=',
          id: 'upload-file',
          label: t.upload.label,
          button: PAGES.earlier.upload.button,
          unscripted: PAGES.earlier.upload.unscripted,
        })}
        <details>
          <summary>${t.upload.commands}</summary>
          ${copyBlock(renderCommands(baseUrl), t.upload.command)}
        </details>
        <p class="dim">${fillHtml(t.upload.hint, { folder, ...ENDINGS })}</p>`,
    })}`,
  })
}

function renderList(rows: readonly UsedImage[], query: ListQuery, mayRemove: boolean): Html {
  const found = selectImages(rows, query)
  const used = rows.filter(({ users }) => users > 0).length
  return html`${renderSearch({
    path: PATH,
    query,
    name: 'q',
    label: shared.label,
    placeholder: t.search.placeholder,
    views: [
      [shared.all, { ...query, used: '' }, rows.length],
      [t.search.used, { ...query, used: 'yes' }, used],
      [t.search.unused, { ...query, used: 'no' }, rows.length - used],
    ],
  })}
  ${
    found.length === 0
      ? emptyState(
          shared.none.title,
          shared.none.text,
          html`<a class="button" href="${PATH}">${shared.none.link}</a>`,
        )
      : renderTable({
          caption: t.caption,
          className: 'images',
          path: PATH,
          query,
          columns: [
            { key: 'name', title: t.name },
            { key: 'format', title: t.format, className: 'added' },
            { ...numberColumn(t.size), key: '-size' },
            { key: '-uses', title: t.usedBy, className: 'uses' },
            { ...ACTIONS, className: 'acts' },
          ],
          rows: found.map((row) => renderRow(row, mayRemove)),
        })
  }`
}

const renderRow = ({ name, format, size_bytes, users }: UsedImage, mayRemove: boolean): Html =>
  html`<tr>
    <th scope="row">
      <a class="mono" href="/images/${encodeURIComponent(name)}" download
        >${middle(printable(name))}</a
      >
    </th>
    <td data-label="${t.format}">${tag(format)}</td>
    <td class="number" data-label="${t.size}">${renderBytes(size_bytes)}</td>
    <td data-label="${t.usedBy}">
      ${
        users === 0
          ? html`<span class="dim">${t.nobody}</span>`
          : html`<a href="${usersPath(name)}">${fillCount(t.users, users)}</a>`
      }
    </td>
    <td class="acts">${mayRemove ? renderRemovalButton(name) : null}</td>
  </tr>`

/** From the address; a name that is still there was not removed. */
function renderRemoved({ query }: EarlierContext, images: readonly ImageRow[]): Content {
  const name = query.get('removed')
  if (!name || images.some((row) => row.name === name)) return null
  return banner('done', fill(t.removal.removed, { name: printable(name.slice(0, 255)) }))
}

/** The first command asks for the password and keeps the session for the second. */
const renderCommands = (baseUrl: string): string =>
  [
    `read -rsp 'Password: ' p; curl -sS -c session --data-urlencode "password=$p" ${baseUrl}/ui/login`,
    `curl -b session -T debian.img.zst ${baseUrl}/images/`,
  ].join('\n')
