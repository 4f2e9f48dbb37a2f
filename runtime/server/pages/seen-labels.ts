/** What somebody sees, in words: the labels of their scope. */
import type { Reach } from '#kit/web/answers/rules/reach.ts'
import { fill, pluralOf } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.account.session

/** `machines with the label lab`. */
export function describeReach(reach: Reach): string {
  if (reach === null) return t.everything
  const labels = reach.join(', ')
  return reach.length === 0 ? t.nothing : fill(pluralOf(t.scopeLabels, reach.length), { labels })
}
