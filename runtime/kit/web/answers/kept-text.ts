/** Keeps the text of a list that many ask for, so that it is rendered once a change. */
import type { TaggedText } from './answers.ts'
import { etagOf } from './rules/etag.ts'

/**
 * Keeps one text, the latest. `render` is called where one of `parts` is another one than before.
 */
export function createKeptText() {
  let last: { readonly parts: readonly unknown[]; readonly text: TaggedText } | null = null
  return (parts: readonly unknown[], render: () => string): TaggedText => {
    if (last === null || parts.some((part, at) => part !== last?.parts[at])) {
      const body = render()
      last = { parts, text: { body, etag: etagOf(body) } }
    }
    return last.text
  }
}
