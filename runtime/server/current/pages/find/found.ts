/** What the search of everything finds: groups of links, each with what it is about. */
import type { Content } from '#kit/web/ui/html.ts'
import type { PAGES } from '#server/texts/texts.ts'

export interface FoundLink {
  readonly href: string
  readonly title: string
  readonly about?: Content
}

export interface FoundGroup {
  readonly name: keyof typeof PAGES.find.groups
  readonly rows: readonly FoundLink[]
}

/** In lower case; empty without a search. */
export const splitFind = (text: string): readonly string[] =>
  text.toLowerCase().split(/\s+/).filter(Boolean)

export function hasWords(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase()
  return words.every((word) => lower.includes(word))
}
