/** The pages around a login with a provider: on the way back, and where it gives no role. */
import { banner, factList, tag } from '#kit/web/ui/elements.ts'
import { html, type Content } from '#kit/web/ui/html.ts'
import type { PageLayout } from '#kit/web/ui/layout.ts'
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { OnwardView, RefusedView } from './provider-login.ts'

const t = PAGES.provider

const MAX_SHOWN = 20

export const renderOnward = (layout: PageLayout, { title, to }: OnwardView): string =>
  layout.bare({
    title,
    refresh: to,
    body: html`<h1>${title}</h1>
      <p><a href="${to}">${t.continue}</a></p>`,
  })

export const renderRefused = (layout: PageLayout, view: RefusedView): string =>
  layout.bare({
    title: view.title,
    body: html`<section class="stack">
      <h1>${view.title}</h1>
      ${banner('failed', view.text)}
      <p>${view.ask}</p>
      ${view.said === null ? null : factList(describeSaid(view.said))}
      <nav class="row" aria-label="${t.ways}">
        <a href="${view.again}">${t.again}</a>
        <a href="/ui/login">${t.back}</a>
      </nav>
    </section>`,
  })

/** For the person who is asked. */
function describeSaid({
  values,
  missing,
  tooLong,
}: NonNullable<RefusedView['said']>): readonly (readonly [string, Content])[] {
  const more = values.length - MAX_SHOWN
  const listed = values.slice(0, MAX_SHOWN).map((value) => html`${tag(value)} `)
  return [
    [t.said, values.length === 0 ? t.nothing : html`${listed}${more > 0 ? `+${more}` : null}`],
    ...missing.map((claim) => [t.missing, html`<code>${claim}</code>`] as const),
    ...tooLong.map((claim) => [t.leftOut, fill(t.leftOutHint, { claim })] as const),
  ]
}
