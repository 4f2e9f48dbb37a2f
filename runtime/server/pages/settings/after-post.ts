/** Where the forms of the settings page lead: to the row that was changed, with the search that found it. */
import { address } from '../../../kit/web/ui/html.ts'
import type { PAGES } from '../../texts/texts.ts'

export const SETTINGS_PATH = '/ui/settings'

/** The hidden field of each form of the page; programs that post to it send none. */
export const SEARCH_FIELD = 'q'
/** Characters of a search. */
export const MAX_SEARCH = 200

type SavedWord = keyof (typeof PAGES)['settings']['saved']

interface SavedPost {
  readonly saved: SavedWord
  /** The dotted names of the settings that were changed. */
  readonly names: readonly string[]
  /** Null: the page is shown from its top. */
  readonly anchor: string | null
  /** What programs get instead, as the deployed server sends it; undefined: the same anchor. */
  readonly plainAnchor?: string | null
}

/**
 * A form of the page gets its search back and has its rows say *Saved*; a program gets the address
 * alone that was always its answer.
 */
export function savedAddress(
  form: URLSearchParams,
  { saved, names, anchor, plainAnchor = anchor }: SavedPost,
): string {
  const isPage = form.has(SEARCH_FIELD)
  const query = isPage ? { saved, at: names.join(' '), ...searchOf(form) } : { saved }
  const at = isPage ? anchor : plainAnchor
  const page = address(SETTINGS_PATH, query)
  return at === null ? page : `${page}#${at}`
}

/** The search that a form of the page came with, as parameters of an address. */
export const searchOf = (form: URLSearchParams): { readonly q: string | null } => ({
  q: form.get(SEARCH_FIELD)?.slice(0, MAX_SEARCH) ?? null,
})

/** The names of the settings that were just saved; none where the address says nothing known. */
export const readSavedNames = (query: URLSearchParams): ReadonlySet<string> =>
  new Set((query.get('at') ?? '').split(' ').filter((name) => name !== ''))
