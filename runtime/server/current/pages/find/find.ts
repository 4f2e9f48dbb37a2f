/** /ui/find: one search of machines, labels, images, people, settings, pages and actions; and the list of its dialog. */
import { page, type Answer } from '#kit/web/answers/answers.ts'
import { PAGES } from '#server/texts/texts.ts'
import { card, emptyState, icon } from '#kit/web/ui/elements.ts'
import { MAX_FIND } from '#kit/web/ui/layout.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { searchField } from '#kit/web/ui/search.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { findMachines } from './find-machines.ts'
import { findActions, findImages, findPeople, findPages, findSettings } from './find-rest.ts'
import { splitFind, type FoundLink, type FoundGroup } from './found.ts'

const t = PAGES.find

export const FIND_PATH = '/ui/find'

export const FIND_PAGES = [pageAt(FIND_PATH, show)]

async function show(context: CurrentContext): Promise<Answer> {
  const text = (context.query.get('q') ?? '').slice(0, MAX_FIND)
  const groups = await findAll(context, text)
  // For the dialog, while somebody types.
  if (context.query.has('list')) return page(String(renderOptions(groups)))
  return await context.show({
    title: t.title,
    section: FIND_PATH,
    body: html`<div class="tools">
        <form class="search" role="search" action="${FIND_PATH}">
          ${searchField({ name: 'q', value: text, label: t.form.label, placeholder: t.form.placeholder })}
          <button>${icon('search')}${t.form.button}</button>
        </form>
      </div>
      ${groups.length === 0 ? emptyState(t.none.title, t.none.text) : null}
      <div class="stack found">${groups.map(renderGroup)}</div>`,
  })
}

async function findAll(context: CurrentContext, text: string): Promise<readonly FoundGroup[]> {
  const words = splitFind(text)
  const { machines, deeds, labels } = await findMachines(context, text)
  const groups: readonly FoundGroup[] = [
    { name: 'machines', rows: machines },
    { name: 'actions', rows: [...deeds, ...findActions(context, words)] },
    { name: 'labels', rows: labels },
    { name: 'images', rows: findImages(context, words) },
    { name: 'people', rows: findPeople(context, words) },
    { name: 'settings', rows: findSettings(context, words) },
    { name: 'pages', rows: findPages(context, words) },
  ]
  return groups.filter(({ rows }) => rows.length > 0)
}

const renderGroup = ({ name, rows }: FoundGroup): Html =>
  card({
    title: t.groups[name],
    body: html`<ul class="rows">
      ${rows.map(
        (row) =>
          html`<li>
            <a class="grow" href="${row.href}">${renderTitle(row)}</a>${renderAbout(row)}
          </li>`,
      )}
    </ul>`,
  })

const renderOptions = (groups: readonly FoundGroup[]): Html =>
  html`${groups.map(
    ({ name, rows }) =>
      html`<div role="group" aria-label="${t.groups[name]}">
        <p aria-hidden="true">${t.groups[name]}</p>
        ${rows.map(
          (row) =>
            html`<a role="option" tabindex="-1" href="${row.href}"
              >${renderTitle(row)}${renderAbout(row)}</a
            >`,
        )}
      </div>`,
  )}`

const renderTitle = ({ title }: FoundLink): Html => html`<bdi>${title}</bdi>`

const renderAbout = ({ about }: FoundLink): Content =>
  about === undefined || about === '' ? null : html` <span class="small dim">${about}</span>`
