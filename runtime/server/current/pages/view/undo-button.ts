/** The button that undoes the newest edit of a machine, for a minute after it. */
import type { Mac } from '#kit/net/rules/mac.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { attributes, html, type Content } from '#kit/web/ui/html.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from './page-context.ts'

export function renderUndo({ site }: Pick<CurrentContext, 'site'>, mac: Mac): Content {
  const edit = site.fleet.findUndoable(mac)
  if (edit === null) return null
  return html`<form
    class="inline"
    ${attributes({ method: 'post', action: `${machinePath(mac)}/undo` })}
  >
    ${hidden({ edit })}<button>${PAGES.frame.undo}</button>
  </form>`
}
