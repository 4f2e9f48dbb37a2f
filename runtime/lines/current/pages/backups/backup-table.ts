/** The table of backups that can be restored, with the actions on each. */
import { badge, renderBytes } from '../../../../web/ui/elements.ts'
import { html, type Html } from '../../../../web/ui/html.ts'
import { ACTIONS, numberColumn, renderTable } from '../../../../web/ui/tables.ts'
import { renderTime, type Clock } from '../../../../web/ui/times.ts'
import { questionButton } from '../frame/question.ts'
import type { StoredBackup } from '../../../../services/backup/backup-store.ts'
import { PAGES } from '../../../../core/texts/pages/texts.ts'

const t = PAGES.backups.list

const PATH = '/ui/backups'

export const renderStored = (stored: readonly StoredBackup[], clock: Clock): Html =>
  renderTable({
    caption: t.caption,
    columns: [
      t.backup,
      t.created,
      numberColumn(t.machines),
      numberColumn(t.size),
      t.release,
      ACTIONS,
    ],
    rows: stored.map(
      ({ backup_id: id, manifest, bytes }) =>
        html`<tr>
          <th scope="row">
            <code>${id}</code> ${manifest === null ? badge('ready', t.hardware) : null}
          </th>
          <td class="nowrap" data-label="Created">${renderTime(timeOf(id), clock)}</td>
          <td class="number" data-label="Machines">${manifest?.machines ?? '–'}</td>
          <td class="number" data-label="Size">${renderBytes(bytes)}</td>
          <td data-label="Release">${manifest?.release ?? '–'}</td>
          <td>
            <div class="row">
              <a class="button" href="${PATH}/${id}/download">${t.download}</a>
              <a class="button" href="${PATH}/${id}/restore">${t.restore}</a>
              ${questionButton({ action: `${PATH}/${id}/delete`, label: t.remove, tone: 'danger' })}
            </div>
          </td>
        </tr>`,
    ),
  })

/** `2026-11-21T06-55-53Z` as a time. */
const timeOf = (id: string): string | null => {
  const parts = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)Z/.exec(id)
  return parts === null ? null : `${parts[1]}T${parts[2]}:${parts[3]}:${parts[4]}Z`
}
