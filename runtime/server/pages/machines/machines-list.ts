/** What the machines pages of both lines share: the live table, the form that adds a machine, and what an empty list says. */
import { parseMac } from '#kit/net/rules/mac.ts'
import { fill, renderNumber } from '#kit/texts/text.ts'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { banner, emptyState } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import type { ListQuery } from '#kit/web/ui/search.ts'
import { renderTable, type TableColumn } from '#kit/web/ui/tables.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { PageContext } from '../page-context.ts'

const t = PAGES.machines.list

export const MACHINES_PATH = '/ui/machines'

export const machinePath = (mac: string): string => `${MACHINES_PATH}/${mac}`

/** `12`, or `3 of 12` where a search finds fewer. */
export const renderFound = (found: number, all: number): string =>
  found === all
    ? renderNumber(all)
    : fill(t.countFound, { found: renderNumber(found), all: renderNumber(all) })

interface FleetTable {
  readonly query: ListQuery
  readonly columns: readonly TableColumn[]
  readonly rows: readonly Html[]
  readonly isWide?: boolean
}

export const renderFleetTable = ({ query, columns, rows, isWide = false }: FleetTable): Html =>
  renderTable({
    caption: t.caption,
    className: isWide ? 'fleet many' : 'fleet',
    path: MACHINES_PATH,
    query,
    columns,
    body: { id: 'rows', 'sse-swap': 'machines-update', 'hx-swap': 'morph:innerHTML' },
    rows,
  })

/** Hidden by the first row. */
export const renderNoMachines = (baseUrl: string, action: Content = null): Html =>
  html`<div class="if-empty">
    ${emptyState(
      t.none.title,
      fillHtml(t.none.text, { address: html`<code>${baseUrl}/pxe-bootstrap.ipxe</code>` }),
      action,
    )}
  </div>`

/** Hidden by the first row. */
export const renderNoneFound = (): Html =>
  html`<div class="if-empty">
    ${emptyState(t.noneFound.title, t.noneFound.text, html`<a class="button" href="${MACHINES_PATH}">${t.noneFound.link}</a>`)}
  </div>`

/** From `deleted` or `missing` in the address. */
export function renderGone(query: URLSearchParams): Content {
  const [deleted, missing] = ['deleted', 'missing'].map((name) => {
    const mac = parseMac(query.get(name) ?? '')
    return mac.ok ? mac.value : null
  })
  if (deleted) return banner('done', fill(t.deleted, { mac: deleted }))
  return missing ? banner('failed', fill(t.missing, { mac: missing })) : null
}

export const renderAddForm = (command: Content = null): Html =>
  html`<form method="post" action="${MACHINES_PATH}" class="row" id="add">
      <input
        name="mac"
        class="mono"
        required
        aria-label="${t.macAddress}"
        placeholder="aa:bb:cc:dd:ee:ff"
        maxlength="17"
        pattern="[0-9a-fA-F]{2}([:\\-][0-9a-fA-F]{2}){5}"
        autocomplete="off"
        spellcheck="false"
      />
      <button>${t.add}</button>
    </form>
    ${command}`

export const renderFoldedAddForm = (command: Content = null): Html =>
  html`<details>
    <summary>${t.addSummary}</summary>
    ${renderAddForm(command)}
  </details>`

/** It boots its own disk until it is configured. */
export async function addMachine(context: PageContext, form: URLSearchParams): Promise<Answer> {
  const { site } = context
  const given = (form.get('mac') ?? '').trim()
  const mac = parseMac(given)
  if (!mac.ok) {
    const error = fill(t.notMac, { text: given.slice(0, 40) })
    return context.goBack(MACHINES_PATH, { error })
  }
  if ((await site.machines.find(mac.value)) === null) {
    const added = await site.fleet.upsert(mac.value, {}, context.by(), (before) => before === null)
    if (!added.ok && added.refusal.why === 'fields') {
      return context.goBack(MACHINES_PATH, { error: t.notAdded })
    }
  }
  return seeOther(machinePath(mac.value))
}

/** `about` is shown below. */
export const renderNameCell = (mac: string, name: string, about: Content = null): Html =>
  name === mac
    ? html`<th scope="row" class="name">
        <a href="${machinePath(mac)}" class="mono">${mac}</a>
        <div>${about}</div>
      </th>`
    : html`<th scope="row" class="name">
        <a href="${machinePath(mac)}" title="${name}"><bdi>${name}</bdi></a>
        <div><span class="mono dim">${mac}</span>${about}</div>
      </th>`

export const MACHINES_TRAIL = html`<a href="${MACHINES_PATH}">${PAGES.frame.titles.machines}</a>`
