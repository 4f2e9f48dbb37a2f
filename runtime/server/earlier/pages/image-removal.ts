/** POST /ui/images/remove: asks before an image is removed, and says which machines use it. */
import { printable } from '#kit/foundation/printable.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { badge, banner } from '#kit/web/ui/elements.ts'
import { checkField, hidden } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { removalAt } from '#server/pages/context-routes.ts'
import { machinePath, MACHINES_PATH } from '#server/pages/machines/machines-list.ts'
import { opensQuestion, renderRemoval } from '#server/pages/question.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { Machine } from '../rules/machine.ts'
import { nameOf, viewOf, type StatedMachine } from './machine-view.ts'
import type { EarlierContext } from './page-context.ts'

const t = PAGES.earlier.images.removal
const shared = PAGES.images.removal

const LIST = '/ui/images'
export const IMAGE_REMOVAL_PATH = `${LIST}/remove`
const MAX_SHOWN = 8

export const IMAGE_REMOVAL = removalAt(
  IMAGE_REMOVAL_PATH,
  (context, form) => ask(context, form),
  remove,
)

export const renderRemovalButton = (name: string): Html =>
  html`<form class="inline" ${opensQuestion(IMAGE_REMOVAL_PATH)}>
    ${hidden({ confirm: 'ask', name })}
    <button aria-label="${fill(t.askOne, { name: printable(name) })}">${t.ask}</button>
  </form>`

export const usersPath = (name: string): string =>
  address(MACHINES_PATH, { q: `image:"${name.replaceAll('"', '*')}"` })

export const listUsers = (machines: readonly Machine[], name: string): readonly Machine[] =>
  machines.filter(({ image }) => image === name)

async function find({ services }: EarlierContext, form: URLSearchParams) {
  const name = form.get('name') ?? ''
  return (await services.shelf.list()).find((row) => row.name === name) ?? null
}

const goBackGone = (context: EarlierContext): Answer => context.goBack(LIST, { error: t.gone })

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
  return await context.show({
    title: shared.title,
    section: LIST,
    trail: html`<a href="${LIST}">${PAGES.frame.titles.images}</a>`,
    body: renderRemoval({
      title: shared.title,
      body: html`${error === null ? null : banner('failed', error)}
        <p>${fillHtml(shared.file, { image: shown })}</p>
        ${renderUsers(name, views)}`,
      fields: html`${hidden({ name })}
      ${users.length === 0 ? null : checkField({ name: 'force', label: shared.force, checked: false })}`,
      action: IMAGE_REMOVAL_PATH,
      cancel: LIST,
      button: shared.button,
    }),
  })
}

function renderUsers(name: string, views: readonly StatedMachine[]): Content {
  if (views.length === 0) return html`<p class="dim">${t.unused}</p>`
  return html`${banner('needs-you', shared.inUse)}
    <ul class="rows">
      ${views.slice(0, MAX_SHOWN).map(
        ({ machine, view }) =>
          html`<li>
            <a class="grow" href="${machinePath(machine.mac)}"
              ><bdi>${printable(nameOf(machine))}</bdi></a
            >${badge(view.state, view.word)}
          </li>`,
      )}
    </ul>
    <p class="small"><a href="${usersPath(name)}">${fillCount(t.users, views.length)}</a></p>`
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
    const error = fill(t.flashing, { name: printable(name), machine: run.mac })
    return context.goBack(LIST, { error })
  }
  const users = listUsers(await site.machines.list(), name)
  if (users.length > 0 && !form.has('force')) return await ask(context, form, t.needsForce)
  await services.shelf.remove(name)
  site.changes.announce({ topic: 'catalog' })
  const details = { name, size_bytes, machines: users.length }
  const note = { kind: 'images.removed', summary: `${name} was removed`, details }
  const subject = { subject_id: name, ...context.by() }
  await site.recordAll([{ ...note, subject_kind: 'catalog' }], subject)
  return context.goTo(address(LIST, { removed: name }))
}
