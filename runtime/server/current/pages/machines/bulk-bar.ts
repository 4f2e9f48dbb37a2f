/** The bar below the table: how many machines are selected, and the actions on them. */
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { html, type Html } from '#kit/web/ui/html.ts'
import type { ListQuery } from '#kit/web/ui/search.ts'

const t = PAGES.machines.bulk

/** In the order of the menu: erasing and deleting at its end. */
export const BULK_ACTIONS = [
  'disarm',
  'image',
  'mode',
  'first-boot',
  'label',
  'capture',
  'refresh',
  'power',
  'lock',
  'unlock',
  'flash',
  'delete',
] as const
export type BulkAction = (typeof BULK_ACTIONS)[number]

export const titleOf = (action: BulkAction): string => t.actions[action].title

export const renderBulkBar = (total: number, query: ListQuery, hasPower: boolean): Html =>
  total === 0
    ? html`<span class="bulk" hidden></span>`
    : html`<div class="bulk" role="group" aria-label="${t.selected}">
        <output data-text="${t.countSelected}">${fill(t.countSelected, { count: 0 })}</output>
        <label class="check"
          ><input type="checkbox" name="all" value="1" data-total="${total}" />
          ${fill(t.allMatching, { count: total })}</label
        >
        ${hidden({ q: query['q'] ?? '', filter: query['filter'], back: new URLSearchParams(query).toString() })}
        <details class="menu" name="menu">
          <summary class="button primary">${t.action}</summary>
          <div class="panel">
            ${BULK_ACTIONS.filter((action) => action !== 'power' || hasPower).map(renderChoice)}
          </div>
        </details>
        <button type="reset">${t.clear}</button>
      </div>`

function renderChoice(action: BulkAction): Html {
  const button = html`<button name="action" value="${action}">${t.actions[action].menu}</button>`
  const group = GROUPS[action]
  return group === undefined
    ? button
    : html`<div role="group" aria-label="${group}">
        <p class="small dim" aria-hidden="true">${group}</p>
        ${button}
      </div>`
}

const GROUPS: Partial<Readonly<Record<BulkAction, string>>> = {
  flash: t.erasing,
  delete: t.deleting,
}
