/** Above the machines list: search, quick filters with their counts, saved searches, and columns. */
import { checkField, hidden } from '#kit/web/ui/fields.ts'
import { address, attributes, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderSearch, type ListQuery } from '#kit/web/ui/tables.ts'
import {
  COLUMN_NAMES,
  COLUMN_TITLES,
  type ColumnName,
  parseColumns,
  renderColumns,
} from '#server/current/view/machine-row.ts'
import { renderMistakes } from '#server/pages/machines/machines-list.ts'
import { VOCABULARY } from './fleet-query.ts'
import { MACHINE_STATES } from '#fleet/machine/rules/states.ts'
import { getCookie } from 'h3'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { localPath } from '#kit/web/answers/checked.ts'
import { formAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

// The searches that somebody saved, as the text of a cookie: few, short, and checked when they come back.

export interface SavedSearch {
  readonly name: string
  readonly q: string
  readonly sort: string
}

const MAX_NAME = 40
const MAX_QUERY = 300
const MAX_SORT = 20
const MAX_SEARCHES = 12
/** Browsers drop cookies above 4096 bytes, with name and attributes. */
const MAX_COOKIE = 3600

/** Anything that `renderSaved` did not write counts as nothing. */
export function parseSaved(cookie: string | null): readonly SavedSearch[] {
  if (cookie === null || cookie.length > MAX_COOKIE) return []
  const read = parseJson(Buffer.from(cookie, 'base64url').toString('utf8'))
  return Array.isArray(read) ? read.slice(0, MAX_SEARCHES).flatMap(parseOne) : []
}

function parseOne(each: unknown): readonly SavedSearch[] {
  if (!Array.isArray(each)) return []
  const [name, q, sort] = each.map((text: unknown) => (typeof text === 'string' ? text : ''))
  const isOurs = isWithin(name, MAX_NAME) && isWithin(q, MAX_QUERY)
  return isOurs ? [{ name: printable(name), q, sort: (sort ?? '').slice(0, MAX_SORT) }] : []
}

const isWithin = (text: string | undefined, most: number): text is string =>
  text !== undefined && text !== '' && text.length <= most

/** Without characters that a cookie must escape. */
export const renderSaved = (searches: readonly SavedSearch[]): string =>
  Buffer.from(JSON.stringify(searches.map(({ name, q, sort }) => [name, q, sort]))).toString(
    'base64url',
  )

type SearchRefusal = 'no-name' | 'no-search' | 'too-long' | 'too-many'

/** Replaces one of the same name; sorted by name. */
export function addSaved(
  searches: readonly SavedSearch[],
  given: SavedSearch,
): Result<readonly SavedSearch[], SearchRefusal> {
  const name = printable(given.name.trim())
  const q = given.q.trim()
  if (name === '') return refuse('no-name')
  if (q === '') return refuse('no-search')
  if (name.length > MAX_NAME || q.length > MAX_QUERY) return refuse('too-long')
  const saved = [
    ...searches.filter((each) => each.name !== name),
    { name, q, sort: given.sort.slice(0, MAX_SORT) },
  ].toSorted((a, b) => a.name.localeCompare(b.name, 'en'))
  const isFull = saved.length > MAX_SEARCHES || renderSaved(saved).length > MAX_COOKIE
  return isFull ? refuse('too-many') : accept(saved)
}

// What a browser remembers of the machines list, in cookies: its columns and its saved searches.

const PATH = '/ui/machines'
const COLUMNS_PATH = `${PATH}/columns`
const SEARCHES_PATH = `${PATH}/searches`
const YEAR_SECONDS = 365 * 24 * 3600
const COLUMNS_COOKIE = 'flasher-columns'
const SEARCHES_COOKIE = 'flasher-searches'

/** `columns` of the address, which can be shared, wins. */
export const readColumns = ({ event, query }: CurrentContext): readonly ColumnName[] =>
  parseColumns(query.get('columns') ?? getCookie(event, COLUMNS_COOKIE) ?? null)

export const readSaved = ({ event }: CurrentContext): readonly SavedSearch[] =>
  parseSaved(getCookie(event, SEARCHES_COOKIE) ?? null)

export const LIST_CHOICES = [
  formAt(COLUMNS_PATH, 'read', chooseColumns, { reach: 'list' }),
  formAt(SEARCHES_PATH, 'read', changeSaved, { reach: 'list' }),
]

/** The cookie is sent to the list alone. */
const remember = (name: string, value: string): string =>
  `${name}=${value}; Path=${PATH}; Max-Age=${value === '' ? 0 : YEAR_SECONDS}; HttpOnly; SameSite=Lax`

function chooseColumns(_context: CurrentContext, form: URLSearchParams): Answer {
  const isReset = form.get('usual') !== null
  const columns = isReset ? '' : renderColumns(parseColumns(`.${form.getAll('columns').join('.')}`))
  const back = new URL(backOf(form), 'http://localhost')
  // Columns of the address would hide the choice.
  back.searchParams.delete('columns')
  return seeOther(`${back.pathname}${back.search}`, {
    'set-cookie': remember(COLUMNS_COOKIE, columns),
  })
}

const backOf = (form: URLSearchParams): string => localPath(form.get('back'), PATH)

const REFUSALS = {
  'no-name': 'Give the search a name.',
  'no-search': 'Search for something first, then save the search.',
  'too-long': `A saved search has at most ${MAX_QUERY} characters, its name ${MAX_NAME}.`,
  'too-many': 'This browser cannot keep more searches. Remove one first.',
} as const

function changeSaved(context: CurrentContext, form: URLSearchParams): Answer {
  const saved = readSaved(context)
  const removed = form.get('remove')
  const [q, sort] = [form.get('q') ?? '', form.get('sort') ?? '']
  if (removed !== null) return answer(saved.filter(({ name }) => name !== removed))
  const added = addSaved(saved, { name: form.get('name') ?? '', q, sort })
  if (added.ok) return answer(added.value)
  return context.goBack(PATH, { error: REFUSALS[added.refusal], query: { q, sort } })

  function answer(searches: readonly SavedSearch[]): Answer {
    const value = searches.length === 0 ? '' : renderSaved(searches)
    return seeOther(backOf(form), { 'set-cookie': remember(SEARCHES_COOKIE, value) })
  }
}

const addressOf = ({ q, sort }: SavedSearch): string => address(PATH, { q, sort })

const VIEWS = [
  ['All', ''],
  ['Needs attention', 'state:needs-attention,failed'],
  ['Discovered', 'is:discovered'],
  ...MACHINE_STATES.flatMap(({ state, filter }) =>
    filter === undefined ? [] : [[filter, `state:${state}`] as const],
  ),
  ['Drifted', 'is:drifted'],
  ['Seen this hour', 'seen:<1h'],
] as const

/** Hidden while they find nothing, as in most fleets. */
const SPARE: ReadonlySet<string> = new Set([
  'is:drifted',
  ...MACHINE_STATES.flatMap(({ state, isRare }) => (isRare === true ? [`state:${state}`] : [])),
])

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
    label: 'Search machines',
    placeholder: 'rack-1  mode:flash-once  -state:done  seen:<1h',
    views: VIEWS.map(([title, q]): [string, ListQuery, number] => [
      title,
      { ...kept, q },
      count(q),
    ]).filter(([, { q }, found]) => found > 0 || !SPARE.has(q ?? '') || q === kept['q']),
    aside: html`${renderSavedSearches(saved, query, back)}${query['view'] === 'wall' ? null : renderColumnChoice(columns, back)}`,
  })}
  ${renderMistakes(kept, VOCABULARY)}`
}

function renderSavedSearches(
  saved: readonly SavedSearch[],
  query: ListQuery,
  back: string,
): Content {
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
            label: COLUMN_TITLES[name],
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
