/** The result of a form, shown on the page that follows; the address carries only names and numbers. */
import type { Imported } from '#cache/store/catalog-imports.ts'
import { banner } from '#kit/web/ui/elements.ts'
import type { AddForm } from './add-card.ts'
import { fillHtml, html, type Content } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, fillCount } from '#kit/texts/text.ts'

const t = PAGES.images.messages

const MAX_LENGTH = 512

export const countsOf = ({ added, known, flaws }: Imported) => ({
  listed: added.length,
  known: known.length,
  skipped: flaws.length,
})

/** Null: the server's address is unknown. */
export type ServerLink = (path: string) => string | null

/** Errors are at the top, as the form is below the images. */
export function messagesOf(
  query: URLSearchParams,
  { errors }: AddForm,
  serverLink: ServerLink,
): Content {
  const wrong = Object.values(errors).join('; ')
  return wrong === ''
    ? messageOf(query, serverLink)
    : banner(
        'failed',
        fillHtml(t.failed, { errors: wrong, link: html`<a href="#add">${t.form}</a>` }),
      )
}

function messageOf(query: URLSearchParams, serverLink: ServerLink): Content {
  const next = renderNext(serverLink)
  for (const what of ['added', 'uploaded', 'accepted', 'removed', 'rejected'] as const) {
    const name = query.get(what)?.slice(0, MAX_LENGTH)
    if (!name) continue
    const words = fillHtml(t[what], { name: html`<strong>${name}</strong>` })
    const isGone = what === 'removed' || what === 'rejected'
    return banner('done', isGone ? words : html`${words} ${next}`)
  }
  const listed = query.get('listed')
  return listed === null
    ? null
    : banner('done', html`${renderListed(Number(listed), query)}. ${next}`)
}

function renderNext(serverLink: ServerLink): Content {
  const [dashboard, machines] = [serverLink('/ui/dashboard'), serverLink('/ui/machines')]
  if (dashboard === null || machines === null) return null
  return html`<span class="row next"
    ><a class="button" href="${dashboard}">${t.dashboard}</a
    ><a class="button" href="${machines}">${t.machines}</a></span
  >`
}

function renderListed(listed: number, query: URLSearchParams): string {
  const [known = 0, skipped = 0] = ['known', 'skipped'].map((name) => Number(query.get(name) ?? 0))
  return [
    fillCount(t.listed, listed),
    known ? fill(t.known, { count: known }) : '',
    skipped ? fill(t.skipped, { count: skipped }) : '',
  ]
    .filter(Boolean)
    .join('; ')
}
