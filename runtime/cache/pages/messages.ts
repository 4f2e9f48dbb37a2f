/** The result of a form, shown on the page that follows; the address carries only names and numbers. */
import type { Imported } from '../../services/cache/catalog-imports.ts'
import { banner } from '../../web/ui/elements.ts'
import type { AddForm } from './images.ts'
import { html, type Content } from '../../web/ui/html.ts'

const MAX_LENGTH = 512

export const countsOf = ({ added, known, flaws }: Imported) => ({
  listed: added.length,
  known: known.length,
  skipped: flaws.length,
})

/** Errors are shown at the top, as the form is below the images. */
export function messagesOf(query: URLSearchParams, { errors }: AddForm): Content {
  const wrong = Object.values(errors).join('; ')
  return wrong === ''
    ? messageOf(query)
    : banner('failed', html`Nothing was added: ${wrong}. <a href="#add">Back to the form</a>`)
}

function messageOf(query: URLSearchParams): Content {
  const [added, removed, listed] = ['added', 'removed', 'listed'].map((name) =>
    query.get(name)?.slice(0, MAX_LENGTH),
  )
  if (added) return banner('done', html`<strong>${added}</strong> is being downloaded.`)
  if (removed) return banner('done', html`<strong>${removed}</strong> was removed.`)
  return listed === undefined ? null : banner('done', renderListed(Number(listed), query))
}

function renderListed(listed: number, query: URLSearchParams): string {
  const [known, skipped] = ['known', 'skipped'].map((name) => Number(query.get(name) ?? 0))
  return [
    `${listed} images of the catalog added`,
    known ? `${known} already listed` : '',
    skipped ? `${skipped} skipped (see the log)` : '',
  ]
    .filter(Boolean)
    .join('; ')
}
