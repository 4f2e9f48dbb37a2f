/** The question before an image is removed: what is deleted, and whether machines use it. */
import type { CacheRow } from '#cache/store/cache-rows.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { banner, card } from '#kit/web/ui/elements.ts'
import { checkField, hidden } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Html } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.images.removal

export function renderRemoval({ entry, kind, state, isPinned, machines }: CacheRow): Html {
  const size = entry.size_bytes === null ? '' : ` (${renderSize(entry.size_bytes)})`
  const name = html`<strong>${entry.name}</strong>`
  const image = html`${name}${size}`
  const consequence =
    kind === 'file'
      ? fillHtml(t.file, { image })
      : state === 'ready'
        ? fillHtml(t.stored, { image })
        : fillHtml(t.listed, { image: name })
  return card({
    body: html`<p class="sentence">${consequence}</p>
      ${isPinned ? banner('needs-you', machines === 0 ? t.ofChannel : t.inUse) : null}
      <form method="post" action="/ui/remove">
        ${hidden({ name: entry.name })}
        ${isPinned ? checkField({ name: 'force', label: t.force, checked: false }) : null}
        <div class="row">
          <a class="button" href="/ui/dashboard">${PAGES.frame.cancel}</a>
          <button class="danger">${t.button}</button>
        </div>
      </form>`,
  })
}
