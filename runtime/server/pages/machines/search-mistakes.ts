/** What the machines pages of both lines say of terms of a search that are not understood. */
import { listMistakes } from '#fleet/machine/rules/query-mistakes.ts'
import type { Vocabulary } from '#fleet/machine/rules/query.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { address, fillHtml, html, type Content } from '#kit/web/ui/html.ts'
import type { ListQuery } from '#kit/web/ui/search.ts'
import { PAGES } from '#server/texts/texts.ts'
import { MACHINES_PATH } from './machines-list.ts'

const t = PAGES.machines.search.mistakes

/** Such terms were searched for as text. */
export function renderMistakes(query: ListQuery, vocabulary: Vocabulary): Content {
  const filters = [...vocabulary.fields, ...vocabulary.times].join(', ')
  return listMistakes(query['q'] ?? '', vocabulary).map(
    ({ term: text, what, suggestion, corrected }) => {
      const term = html`<code>${text}</code>`
      if (what === 'time') {
        return banner('needs-you', fillHtml(t.time, { term, examples: TIMES }))
      }
      if (suggestion === null) return banner('needs-you', fillHtml(t[what], { term, filters }))
      const href = address(MACHINES_PATH, { ...query, q: corrected })
      const meant = html`<a href="${href}"><code>${suggestion}</code></a>`
      return banner('needs-you', fillHtml(t[`${what}Meant`], { term, suggestion: meant }))
    },
  )
}

const TIMES = html`<code>seen:&lt;1h</code>, <code>seen:&gt;7d</code>, <code>seen:never</code>`
