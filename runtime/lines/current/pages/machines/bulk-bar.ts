/** The bar below the table: what is picked, and what can be done with it. */
import { hidden } from '../../../../web/ui/fields.ts'
import { html, type Html } from '../../../../web/ui/html.ts'
import type { TableQuery } from '../../../../web/ui/tables.ts'

/** Actions of many, in the order of their use; `delete` is the server's own. */
export const BULK_ACTIONS = {
  flash: 'Flash',
  image: 'Assign image…',
  mode: 'Set boot mode…',
  label: 'Label…',
  refresh: 'Refresh inventory',
  lock: 'Lock',
  unlock: 'Unlock',
  delete: 'Delete',
} as const
export type BulkAction = keyof typeof BULK_ACTIONS

export const renderBulkBar = (total: number, query: TableQuery): Html =>
  total === 0
    ? html`<span class="bulk" hidden></span>`
    : html`<div class="bulk" role="group" aria-label="With the selected machines">
        <output>0 selected</output>
        <label class="check"
          ><input type="checkbox" name="all" value="1" data-total="${total}" /> all ${total} that
          match</label
        >
        ${hidden({ q: query['q'] ?? '', filter: query['filter'], back: new URLSearchParams(query).toString() })}
        <select name="action" aria-label="What to do">
          ${Object.entries(BULK_ACTIONS).map(([name, title]) => html`<option value="${name}">${title}</option>`)}
        </select>
        <button class="primary">Show what would be done</button>
        <button type="reset">Clear</button>
      </div>`
