/** Where the forms of the settings page lead: to the row that was changed, with the search that found it. */
import { address } from '#kit/web/ui/html.ts'
import type { PAGES } from '#server/texts/texts.ts'

export const SETTINGS_PATH = '/ui/settings'

/** Programs that post to the page send none. */
export const SEARCH_FIELD = 'q'
export const MAX_SEARCH = 200

type SavedWord = keyof (typeof PAGES)['settings']['saved']

interface SavedPost {
  readonly saved: SavedWord
  /** Dotted. */
  readonly names: readonly string[]
  /** Null: the top of the page. */
  readonly anchor: string | null
  /** For programs, as the deployed server sends it; undefined: `anchor`. */
  readonly plainAnchor?: string | null
}

/** With the search and *Saved* for a form of the page; for programs, the same address as ever. */
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

export const searchOf = (form: URLSearchParams): { readonly q: string | null } => ({
  q: form.get(SEARCH_FIELD)?.slice(0, MAX_SEARCH) ?? null,
})

/** Unknown names are ignored. */
export const readSavedNames = (query: URLSearchParams): ReadonlySet<string> =>
  new Set((query.get('at') ?? '').split(' ').filter((name) => name !== ''))
