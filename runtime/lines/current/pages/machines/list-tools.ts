/** Above the machines list: search, quick filters with their counts, saved searches, and columns. */
import { banner } from '../../../../web/ui/elements.ts'
import { checkField, hidden } from '../../../../web/ui/fields.ts'
import { address, attributes, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { renderSearch, type ListQuery } from '../../../../web/ui/search.ts'
import { COLUMN_NAMES, FLEET_COLUMNS, type ColumnName } from '../view/fleet-columns.ts'
import { FILTER_NAMES, listSearchMistakes } from './fleet-query.ts'
import { addressOf, COLUMNS_PATH, SEARCHES_PATH } from './list-choices.ts'
import { MAX_NAME, MAX_QUERY, type SavedSearch } from './saved-searches.ts'

const PATH = '/ui/machines'

const VIEWS = [
  ['All', ''],
  ['Needs attention', 'state:needs-you,failed'],
  ['Discovered', 'is:discovered'],
  ['Armed', 'state:armed'],
  ['Running', 'state:running'],
  ['Done', 'state:done'],
  ['Seen this hour', 'seen:<1h'],
] as const

interface ListTools {
  readonly query: ListQuery
  readonly columns: readonly ColumnName[]
  readonly saved: readonly SavedSearch[]
  /** How many machines a search finds. */
  count(q: string): number
}

export function renderTools({ query, columns, saved, count }: ListTools): Html {
  const { page: _page, filter: _filter, ...kept } = query
  const back = address(PATH, query)
  return html`${renderSearch({
    path: PATH,
    query: kept,
    name: 'q',
    label: 'Search machines',
    placeholder: 'rack-1  mode:flash-once  -state:done  seen:<1h',
    views: VIEWS.map(([title, q]) => [title, { ...kept, q }, count(q)]),
    aside: html`${renderSaved(saved, query, back)}${renderColumnChoice(columns, back)}`,
  })}
  ${renderMistakes(kept)}`
}

/** Terms that are not understood; they were searched for as text. */
function renderMistakes(query: ListQuery): Content {
  return listSearchMistakes(query['q'] ?? '').map(({ term, what, suggestion, corrected }) => {
    const given = html`<code>${term}</code>`
    const meant =
      suggestion === null
        ? null
        : html`<a href="${address(PATH, { ...query, q: corrected })}"
            ><code>${suggestion}</code></a
          >`
    return banner('needs-you', MISTAKES[what](given, meant))
  })
}

const MISTAKES = {
  filter: (given: Html, meant: Html | null): Html =>
    meant === null
      ? html`${given} is not a filter. The filters are ${FILTER_NAMES}.`
      : html`${given} is not a filter. Did you mean ${meant}?`,
  value: (given: Html, meant: Html | null): Html =>
    meant === null
      ? html`${given} finds nothing: the filter has no such value.`
      : html`${given} finds nothing. Did you mean ${meant}?`,
  time: (given: Html): Html =>
    html`${given} is not a time. Examples: <code>seen:&lt;1h</code>, <code>seen:&gt;7d</code>,
      <code>seen:never</code>.`,
} as const

function renderSaved(saved: readonly SavedSearch[], query: ListQuery, back: string): Content {
  const { q = '', sort } = query
  return html`<details class="menu" name="menu">
    <summary class="button">Saved searches</summary>
    <div class="panel stack">
      ${
        saved.length === 0
          ? html`<p class="dim">No saved searches in this browser.</p>`
          : html`<ul>
              ${saved.map((each) => renderOne(each, q, back))}
            </ul>`
      }
      ${
        q.trim() === '' || q.length > MAX_QUERY
          ? html`<p class="hint">Search for something to save it here.</p>`
          : html`<form method="post" action="${SEARCHES_PATH}">
              ${hidden({ q, sort, back })}
              <label for="search-name">Save this search as</label>
              <div class="row">
                <input
                  id="search-name"
                  name="name"
                  required
                  maxlength="${MAX_NAME}"
                  autocomplete="off"
                />
                <button>Save</button>
              </div>
            </form>`
      }
    </div>
  </details>`
}

const renderOne = (each: SavedSearch, q: string, back: string): Html =>
  html`<li class="row">
    <a
      class="grow"
      title="${each.q}"
      href="${addressOf(each)}"
      ${attributes({ 'aria-current': each.q === q ? 'true' : null })}
      ><bdi>${each.name}</bdi></a
    >
    <form method="post" action="${SEARCHES_PATH}" class="inline">
      ${hidden({ back })}
      <button name="remove" value="${each.name}" aria-label="Remove ${each.name}">Remove</button>
    </form>
  </li>`

const renderColumnChoice = (columns: readonly ColumnName[], back: string): Html =>
  html`<details class="menu" name="menu">
    <summary class="button">Columns</summary>
    <form method="post" action="${COLUMNS_PATH}" class="panel stack">
      ${hidden({ back })}
      <fieldset>
        <legend>Columns of the table</legend>
        ${COLUMN_NAMES.filter((name) => name !== 'name').map((name) =>
          checkField({
            name: 'columns',
            value: name,
            label: FLEET_COLUMNS[name].title,
            checked: columns.includes(name),
          }),
        )}
      </fieldset>
      <div class="row">
        <button class="primary">Show these</button>
        <button name="usual" value="1">Reset</button>
      </div>
      <p class="hint">This browser remembers them.</p>
    </form>
  </details>`
