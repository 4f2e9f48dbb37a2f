/** The bar below the table: how many machines are selected, and the actions on them. */
import { hidden } from '../../../../web/ui/fields.ts'
import { html, type Html } from '../../../../web/ui/html.ts'
import type { ListQuery } from '../../../../web/ui/search.ts'

/** In the order of the menu and in the words of a machine's own page: the title, and the verb before and after. */
export const BULK_ACTIONS = {
  flash: ['Flash again', 'Arm', 'Armed'],
  image: ['Assign image…', 'Assign the image to', 'Assigned the image to'],
  mode: ['Set network boot…', 'Set the network boot of', 'Set the network boot of'],
  label: ['Label…', 'Label', 'Labelled'],
  refresh: ['Refresh inventory', 'Refresh the inventory of', 'Requested the inventory of'],
  lock: ['Lock', 'Lock', 'Locked'],
  unlock: ['Unlock', 'Unlock', 'Unlocked'],
  delete: ['Delete', 'Delete', 'Deleted'],
} as const
export type BulkAction = keyof typeof BULK_ACTIONS

export const titleOf = (action: BulkAction): string => BULK_ACTIONS[action][0].replace('…', '')

export const renderBulkBar = (total: number, query: ListQuery): Html =>
  total === 0
    ? html`<span class="bulk" hidden></span>`
    : html`<div class="bulk" role="group" aria-label="Selected machines">
        <output>0 selected</output>
        <label class="check"
          ><input type="checkbox" name="all" value="1" data-total="${total}" /> all ${total}
          matching</label
        >
        ${hidden({ q: query['q'] ?? '', filter: query['filter'], back: new URLSearchParams(query).toString() })}
        <select name="action" aria-label="Action">
          ${Object.entries(BULK_ACTIONS).map(([name, [title]]) => html`<option value="${name}">${title}</option>`)}
        </select>
        <button class="primary">Preview</button>
        <button type="reset">Clear</button>
      </div>`
