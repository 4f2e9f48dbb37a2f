/** What a browser remembers of the machines list, in cookies: its columns and its saved searches. */
import { getCookie } from 'h3'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { localPath } from '#kit/web/answers/local-path.ts'
import { address } from '#kit/web/ui/html.ts'
import { formAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { parseColumns, renderColumns, type ColumnName } from '../view/fleet-columns.ts'
import {
  addSaved,
  MAX_NAME,
  MAX_QUERY,
  parseSaved,
  renderSaved,
  type SavedSearch,
} from './saved-searches.ts'

const t = PAGES.machines.search.refusals

const PATH = '/ui/machines'
export const COLUMNS_PATH = `${PATH}/columns`
export const SEARCHES_PATH = `${PATH}/searches`
const YEAR_SECONDS = 365 * 24 * 3600
const COLUMNS_COOKIE = 'flasher-columns'
const SEARCHES_COOKIE = 'flasher-searches'

/** `columns` of the address, which can be shared, wins. */
export const readColumns = ({ event, query }: CurrentContext): readonly ColumnName[] =>
  parseColumns(query.get('columns') ?? getCookie(event, COLUMNS_COOKIE) ?? null)

export const readSaved = ({ event }: CurrentContext): readonly SavedSearch[] =>
  parseSaved(getCookie(event, SEARCHES_COOKIE) ?? null)

export const LIST_CHOICES = [
  formAt(COLUMNS_PATH, chooseColumns),
  formAt(SEARCHES_PATH, changeSaved),
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
  'no-name': t.noName,
  'no-search': t.noSearch,
  'too-long': fill(t.tooLong, { query: MAX_QUERY, name: MAX_NAME }),
  'too-many': t.tooMany,
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

export const addressOf = ({ q, sort }: SavedSearch): string => address(PATH, { q, sort })
