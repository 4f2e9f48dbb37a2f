/** /ui/images: what is in the image folder, and how more comes in. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { IMAGE_ENDINGS } from '#appliance/disk-images.ts'
import { printable } from '#kit/foundation/printable.ts'
import { banner, card, copyBlock, emptyState, renderBytes, tag } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html, address } from '#kit/web/ui/html.ts'
import {
  readListQuery,
  renderSearch,
  type ListQuery,
  ACTIONS,
  numberColumn,
  renderTable,
} from '#kit/web/ui/tables.ts'
import { selectImages, type UsedImage } from '../rules/image-list.ts'
import { type EarlierContext, nameOf, viewOf, type StatedMachine } from './machine-view.ts'
import type { ImageRow } from '#engine/image/rules/image.ts'
import { fill, fillCount } from '#kit/foundation/text.ts'
import { pageAt, removalAt } from '#server/pages/context-routes.ts'
import { hidden, renderUploadForm } from '#kit/web/ui/fields.ts'
import { renderSize } from '#kit/foundation/size.ts'
import {
  machinePath,
  MACHINES_PATH,
  renderStateBadge,
} from '#server/pages/machines/machines-list.ts'
import { opensQuestion, showRemoval } from '#server/pages/question.ts'
import type { Machine } from '../rules/machine.ts'

// POST /ui/images/remove: asks before an image is removed, and says which machines use it.

const LIST = '/ui/images'
const IMAGE_REMOVAL_PATH = `${LIST}/remove`
const MAX_SHOWN = 10

const IMAGE_REMOVAL = removalAt(
  IMAGE_REMOVAL_PATH,
  'admin',
  (context, form) => ask(context, form),
  remove,
  { reach: 'shared' },
)

const renderRemovalButton = (name: string): Html =>
  html`<form class="inline" ${opensQuestion(IMAGE_REMOVAL_PATH)}>
    ${hidden({ confirm: 'ask', name })}
    <button aria-label="Remove ${printable(name)}">Remove</button>
  </form>`

const usersPath = (name: string): string =>
  address(MACHINES_PATH, { q: `image:"${name.replaceAll('"', '*')}"` })

const listUsers = (machines: readonly Machine[], name: string): readonly Machine[] =>
  machines.filter(({ image }) => image === name)

async function find({ services }: EarlierContext, form: URLSearchParams) {
  const name = form.get('name') ?? ''
  return (await services.shelf.list()).find((row) => row.name === name) ?? null
}

const goBackGone = (context: EarlierContext): Answer =>
  context.goBack(LIST, { error: 'This image was removed.' })

async function ask(
  context: EarlierContext,
  form: URLSearchParams,
  error: string | null = null,
): Promise<Answer> {
  const image = await find(context, form)
  if (image === null) return goBackGone(context)
  const { name, size_bytes } = image
  const users = listUsers(await context.site.machines.list(), name)
  const views = users.map((machine) => viewOf(context, machine))
  const shown = html`<strong><bdi>${printable(name)}</bdi></strong> (${renderSize(size_bytes)})`
  return await showRemoval(context, {
    title: 'Remove an image',
    trail: html`<a href="${LIST}">Images</a>`,
    question: 'Remove an image',
    body: html`${error === null ? null : banner('failed', error)}
      <p>The file ${shown} will be deleted from the folder.</p>
      ${renderUsers(name, views)}`,
    fields: hidden({ name, ...(users.length === 0 ? {} : { force: '1' }) }),
    cancel: LIST,
    button: users.length === 0 ? 'Remove image' : 'Remove anyway',
  })
}

function renderUsers(name: string, views: readonly StatedMachine[]): Content {
  if (views.length === 0) return html`<p class="dim">No machine uses it.</p>`
  const more = views.length - MAX_SHOWN
  return html`${banner('needs-you', fillCount({ one: '{count} machine uses this image and cannot be flashed without it.', other: '{count} machines use this image and cannot be flashed without it.' }, views.length))}
    <ul class="rows">
      ${views.slice(0, MAX_SHOWN).map(
        ({ machine, view }) =>
          html`<li>
            <a class="grow" href="${machinePath(machine.mac)}"
              ><bdi>${printable(nameOf(machine))}</bdi></a
            >${renderStateBadge(view)}
          </li>`,
      )}
      ${more > 0 ? html`<li><a href="${usersPath(name)}">and ${more} more</a></li>` : null}
    </ul>`
}

/** Without the image, a disk that is being flashed stays half written. */
const findFlashing = ({ site }: EarlierContext, name: string) =>
  site.runs.listRunning().find(({ image, stalled }) => image?.name === name && !stalled) ?? null

async function remove(context: EarlierContext, form: URLSearchParams): Promise<Answer> {
  const { site, services } = context
  const image = await find(context, form)
  if (image === null) return goBackGone(context)
  const { name, size_bytes } = image
  const run = findFlashing(context, name)
  if (run !== null) {
    const error = `${printable(name)} was not removed: ${run.mac} is being flashed with it.`
    return context.goBack(LIST, { error })
  }
  const users = listUsers(await site.machines.list(), name)
  if (users.length > 0 && !form.has('force'))
    return await ask(context, form, 'Not removed: machines use it.')
  await services.shelf.remove(name)
  site.changes.announce({ topic: 'catalog' })
  const details = { name, size_bytes, machines: users.length }
  const note = { kind: 'images.removed', summary: `${name} was removed`, details }
  const subject = { subject_id: name, ...context.by() }
  await site.recordAll([{ ...note, subject_kind: 'catalog' }], subject)
  return context.goTo(address(LIST, { removed: name }))
}

const ENDINGS = {
  endings: IMAGE_ENDINGS.slice(0, -1).join(', '),
  last: IMAGE_ENDINGS.slice(-1).join(''),
}

const PATH = '/ui/images'

export const IMAGE_PAGES = [pageAt(PATH, 'read', show, { reach: 'shared' }), IMAGE_REMOVAL]

async function show(context: EarlierContext): Promise<Answer> {
  const { shelf } = context.services
  const [images, machines] = [await shelf.list(), await context.site.machines.list()]
  const mayRemove = context.site.mayOpen(context.event, IMAGE_REMOVAL_PATH, 'POST')
  const { baseUrl } = context.contact()
  const rows = images.map((row) => ({ ...row, users: listUsers(machines, row.name).length }))
  const folder = html`<code>${shelf.root}</code>`
  return await context.show({
    title: 'Images',
    count: images.length,
    messages: html`${context.message()}${renderRemoved(context, images)}`,
    body: html`<p class="dim">
        ${fillHtml('Images are the files in the folder {folder} of this server.', { folder })}
      </p>
      ${
        images.length === 0
          ? emptyState('No images', 'Copy images into the folder, or upload one.')
          : renderList(rows, readListQuery(context.query, ['q', 'used', 'sort'], 200), mayRemove)
      }
      ${card({
        title: 'Upload an image',
        body: html`${renderUploadForm({
            kind: { name: 'files', to: '/images/' },
            done: '/ui/images?uploaded=',
            id: 'upload-file',
            label: 'Image file',
            button: 'Upload',
            unscripted: 'Uploading from a browser needs JavaScript.',
          })}
          <details>
            <summary>From a command line</summary>
            ${copyBlock(renderCommands(baseUrl), 'Command')}
          </details>
          <p class="dim">${fill('Names must end in {endings} or {last}.', ENDINGS)}</p>`,
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
    label: 'Search images',
    placeholder: 'Name, format',
    views: [
      ['All', { ...query, used: '' }, rows.length],
      ['In use', { ...query, used: 'yes' }, used],
      ['Unused', { ...query, used: 'no' }, rows.length - used],
    ],
  })}
  ${
    found.length === 0
      ? emptyState(
          'No matching images',
          'Remove a term or clear the search.',
          html`<a class="button" href="${PATH}">Show all images</a>`,
        )
      : renderTable({
          caption: 'Images',
          className: 'images',
          path: PATH,
          query,
          columns: [
            { key: 'name', title: 'Name' },
            { key: 'format', title: 'Format', className: 'added' },
            { ...numberColumn('Size'), key: '-size' },
            { key: '-uses', title: 'Used by', className: 'uses' },
            { ...ACTIONS, className: 'acts' },
          ],
          rows: found.map((row) => renderRow(row, mayRemove)),
        })
  }`
}

const renderRow = ({ name, format, size_bytes, users }: UsedImage, mayRemove: boolean): Html =>
  html`<tr>
    <th scope="row">
      <a href="/images/${encodeURIComponent(name)}" download
        ><bdi class="image-name">${printable(name)}</bdi></a
      >
    </th>
    <td data-label="Format">${tag(format)}</td>
    <td class="number" data-label="Size">${renderBytes(size_bytes)}</td>
    <td data-label="Used by">
      ${
        users === 0
          ? html`<span class="dim">no machine</span>`
          : html`<a href="${usersPath(name)}"
              >${fillCount({ one: '1 machine', other: '{count} machines' }, users)}</a
            >`
      }
    </td>
    <td class="acts">${mayRemove ? renderRemovalButton(name) : null}</td>
  </tr>`

/** From the address; a name that is still there was not removed. */
function renderRemoved({ query }: EarlierContext, images: readonly ImageRow[]): Content {
  const name = query.get('removed')
  if (!name || images.some((row) => row.name === name)) return null
  return banner('done', `${printable(name.slice(0, 255))} was removed.`)
}

/** The first command asks for the password and keeps the session for the second. */
const renderCommands = (baseUrl: string): string =>
  [
    `read -rsp 'Password: ' p; curl -sS -c session --data-urlencode "password=$p" ${baseUrl}/ui/login`,
    `curl -b session -T debian.img.zst ${baseUrl}/images/`,
  ].join('\n')
