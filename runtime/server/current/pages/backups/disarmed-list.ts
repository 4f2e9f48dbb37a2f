/** The machines that a restore disarms: in its question, and in its result. */
import { printable } from '../../../../kit/foundation/printable.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fillCount } from '../../../../kit/texts/text.ts'
import { parseDisarmed, type DisarmedMachine } from '../../../../fleet/backup/disarming.ts'
import type { Journal } from '../../../../fleet/state/journal.ts'
import { banner } from '../../../../kit/web/ui/elements.ts'
import { html, type Html } from '../../../../kit/web/ui/html.ts'

const t = PAGES.backups

/** Before it is restored: also says that nothing is armed. */
export const renderForeseen = (machines: readonly DisarmedMachine[]): Html =>
  machines.length === 0
    ? html`<p>${t.restore.disarmsNone}</p>`
    : banner(
        'needs-you',
        html`<p>${fillCount(t.restore.disarms, machines.length)}</p>
          ${renderNames(machines)}`,
      )

/** Lists what was disarmed after a restore; null: nothing was armed. */
export async function renderDisarmed(journal: Journal, id: string): Promise<Html | null> {
  const [event] = await journal.list({ kind: 'backup.restored', subject_id: id, limit: 1 })
  const disarmed = parseDisarmed(event?.details)
  if (disarmed.length === 0) return null
  return banner(
    'needs-you',
    html`<p>${fillCount(t.done.disarmed, disarmed.length)}</p>
      ${renderNames(disarmed)}`,
  )
}

const renderNames = (machines: readonly DisarmedMachine[]): Html =>
  html`<ul>
    ${machines.map(
      ({ mac, name }) =>
        html`<li>
          <a href="/ui/machines/${mac}"><bdi>${name === null ? mac : printable(name)}</bdi></a>
          ${name === null ? null : html`<code>${mac}</code>`}
        </li>`,
    )}
  </ul>`
