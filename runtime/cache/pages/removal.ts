/** The question before an image is removed: what is deleted, and whether machines use it. */
import type { CacheRow } from '../../services/cache/cache-rows.ts'
import { renderExactSize } from '../../core/foundation/size.ts'
import { banner, card } from '../../web/ui/elements.ts'
import { checkField, hidden } from '../../web/ui/fields.ts'
import { html, type Html } from '../../web/ui/html.ts'

export function renderRemoval({ entry, kind, state, isPinned }: CacheRow): Html {
  const size = entry.size_bytes === null ? '' : ` (${renderExactSize(entry.size_bytes)})`
  const consequence =
    kind === 'file'
      ? html`The file <strong>${entry.name}</strong>${size} will be deleted from the folder.`
      : state === 'ready'
        ? html`<strong>${entry.name}</strong>${size} will be removed from the list, and its data
            from the disk unless another entry shares it.`
        : html`<strong>${entry.name}</strong> will be removed from the list.`
  return card({
    body: html`<p class="sentence">${consequence}</p>
      ${
        isPinned
          ? banner('needs-you', 'In use by machines, which cannot be flashed without it.')
          : null
      }
      <form method="post" action="/ui/remove">
        ${hidden({ name: entry.name })}
        ${isPinned ? checkField({ name: 'force', label: 'Remove anyway', checked: false }) : null}
        <div class="row">
          <button class="danger">Remove ${entry.name}</button>
          <a class="button" href="/ui/dashboard">Cancel</a>
        </div>
      </form>`,
  })
}
