/** Asks before an image is removed: what goes, and who needs it. */
import type { CacheRow } from '../../services/cache/cache-rows.ts'
import { renderExactSize } from '../../core/foundation/size.ts'
import { banner, card } from '../../web/ui/elements.ts'
import { checkField, hidden } from '../../web/ui/fields.ts'
import { html, type Html } from '../../web/ui/html.ts'

export function renderRemoval({ entry, kind, state, isPinned }: CacheRow): Html {
  const size = entry.size_bytes === null ? '' : ` (${renderExactSize(entry.size_bytes)})`
  const what =
    kind === 'file'
      ? html`The file <strong>${entry.name}</strong>${size} is deleted from the folder.`
      : state === 'ready'
        ? html`<strong>${entry.name}</strong>${size} goes from the list, and its bytes from the disk
            unless another entry has the same.`
        : html`<strong>${entry.name}</strong> goes from the list.`
  return card({
    body: html`<p class="sentence">${what}</p>
      ${
        isPinned
          ? banner('needs-you', 'Machines are bound to it: without it they cannot be flashed.')
          : null
      }
      <form method="post" action="/ui/remove">
        ${hidden({ name: entry.name })}
        ${
          isPinned
            ? checkField({ name: 'force', label: 'Remove it all the same', checked: false })
            : null
        }
        <div class="row">
          <button class="danger">Remove ${entry.name}</button>
          <a class="button" href="/ui/dashboard">Keep it</a>
        </div>
      </form>`,
  })
}
