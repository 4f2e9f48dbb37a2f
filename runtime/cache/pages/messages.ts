/** What a form has done, told on the page that follows it; names and numbers alone go through the address. */
import type { Imported } from '../../services/cache/catalog-imports.ts'
import { banner } from '../../web/ui/elements.ts'
import type { AddForm } from './images.ts'
import { html, type Content } from '../../web/ui/html.ts'

const LONGEST = 512

export const countsOf = ({ added, known, flaws }: Imported) => ({
  listed: added.length,
  known: known.length,
  skipped: flaws.length,
})

/** What was wrong comes first: the form itself stands below the images. */
export function messagesOf(query: URLSearchParams, { errors }: AddForm): Content {
  const wrong = Object.values(errors).join('; ')
  return wrong === ''
    ? messageOf(query)
    : banner('failed', html`Nothing was added: ${wrong}. <a href="#add">Back to the form</a>`)
}

function messageOf(query: URLSearchParams): Content {
  const [added, removed, listed] = ['added', 'removed', 'listed'].map((name) =>
    query.get(name)?.slice(0, LONGEST),
  )
  if (added) return banner('done', html`<strong>${added}</strong> is being downloaded.`)
  if (removed) return banner('done', html`<strong>${removed}</strong> was removed.`)
  return listed === undefined ? null : banner('done', renderListed(Number(listed), query))
}

function renderListed(listed: number, query: URLSearchParams): string {
  const [known, skipped] = ['known', 'skipped'].map((name) => Number(query.get(name) ?? 0))
  return [
    `${listed} images of the catalog were listed`,
    known ? `${known} were listed before` : '',
    skipped ? `${skipped} were left out (the log says why)` : '',
  ]
    .filter(Boolean)
    .join('; ')
}
