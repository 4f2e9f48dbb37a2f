/** Above the machines list: search, quick filters with their counts, saved searches, and columns. */
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { checkField, hidden } from '#kit/web/ui/fields.ts'
import { address, attributes, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderSearch, type ListQuery } from '#kit/web/ui/search.ts'
import { COLUMN_NAMES, COLUMN_TITLES, type ColumnName } from '../view/fleet-columns.ts'
import { renderMistakes } from '#server/pages/machines/search-mistakes.ts'
import { VOCABULARY } from './fleet-query.ts'
import { addressOf, COLUMNS_PATH, SEARCHES_PATH } from './list-choices.ts'
import { MAX_NAME, MAX_QUERY, type SavedSearch } from './saved-searches.ts'

const t = PAGES.machines.search

const PATH = '/ui/machines'

const VIEWS = [
  [t.filters.all, ''],
  [t.filters.needsAttention, 'state:needs-attention,failed'],
  [t.filters.failed, 'state:failed'],
  [t.filters.discovered, 'is:discovered'],
  [t.filters.armed, 'state:armed'],
  [t.filters.captureOrdered, 'state:capture'],
  [t.filters.running, 'state:running'],
  [t.filters.done, 'state:done'],
  [t.filters.drifted, 'is:drifted'],
  [t.filters.seenThisHour, 'seen:<1h'],
] as const

/** Hidden while it finds nothing, as in most fleets. */
const isSpare = (q: string | undefined): boolean => q === 'state:capture' || q === 'is:drifted'

interface ListTools {
  readonly query: ListQuery
  readonly columns: readonly ColumnName[]
  readonly saved: readonly SavedSearch[]
  count(q: string): number
}

export function renderTools({ query, columns, saved, count }: ListTools): Html {
  const { page: _page, filter: _filter, ...kept } = query
  const back = address(PATH, query)
  return html`${renderSearch({
    path: PATH,
    query: kept,
    name: 'q',
    label: t.label,
    placeholder: t.placeholder,
    views: VIEWS.map(([title, q]): [string, ListQuery, number] => [
      title,
      { ...kept, q },
      count(q),
    ]).filter(([, { q }, found]) => found > 0 || !isSpare(q) || q === kept['q']),
    aside: html`${renderSaved(saved, query, back)}${query['view'] === 'wall' ? null : renderColumnChoice(columns, back)}`,
  })}
  ${renderMistakes(kept, VOCABULARY)}`
}

function renderSaved(saved: readonly SavedSearch[], query: ListQuery, back: string): Content {
  const { q = '', sort } = query
  return html`<details class="menu" name="menu">
    <summary class="button">${t.saved.title}</summary>
    <div class="panel stack">
      ${
        saved.length === 0
          ? html`<p class="dim">${t.saved.none}</p>`
          : html`<ul>
              ${saved.map((each) => renderOne(each, q, back))}
            </ul>`
      }
      ${
        q.trim() === '' || q.length > MAX_QUERY
          ? html`<p class="hint">${t.saved.hint}</p>`
          : html`<form method="post" action="${SEARCHES_PATH}">
              ${hidden({ q, sort, back })}
              <label for="search-name">${t.saved.name}</label>
              <div class="row">
                <input
                  id="search-name"
                  name="name"
                  required
                  maxlength="${MAX_NAME}"
                  autocomplete="off"
                />
                <button>${t.saved.save}</button>
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
      <button
        name="remove"
        value="${each.name}"
        aria-label="${fill(t.saved.removeOne, { name: each.name })}"
      >
        ${t.saved.remove}
      </button>
    </form>
  </li>`

const renderColumnChoice = (columns: readonly ColumnName[], back: string): Html =>
  html`<details class="menu" name="menu">
    <summary class="button">${t.columns.title}</summary>
    <form method="post" action="${COLUMNS_PATH}" class="panel stack">
      ${hidden({ back })}
      <fieldset>
        <legend>${t.columns.legend}</legend>
        ${COLUMN_NAMES.filter((name) => name !== 'name').map((name) =>
          checkField({
            name: 'columns',
            value: name,
            label: COLUMN_TITLES[name],
            checked: columns.includes(name),
          }),
        )}
      </fieldset>
      <div class="row">
        <button class="primary">${t.columns.show}</button>
        <button name="usual" value="1">${t.columns.reset}</button>
      </div>
      <p class="hint">${t.columns.hint}</p>
    </form>
  </details>`
