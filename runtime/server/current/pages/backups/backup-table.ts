/** The table of backups that can be restored, with the actions on each. */
import { readBackupTime } from '../../../../fleet/backup/rules/backup.ts'
import { badge, renderBytes } from '../../../../kit/web/ui/elements.ts'
import { html, type Html } from '../../../../kit/web/ui/html.ts'
import { ACTIONS, numberColumn, renderTable } from '../../../../kit/web/ui/tables.ts'
import { renderTime, type Clock } from '../../../../kit/web/ui/times.ts'
import { questionButton } from '../../../pages/question.ts'
import type { StoredBackup } from '../../../../fleet/backup/backup-store.ts'
import { PAGES } from '../../../texts/texts.ts'

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
          <td class="nowrap" data-label="${t.created}">${renderTime(readBackupTime(id), clock)}</td>
          <td class="number" data-label="${t.machines}">${manifest?.machines ?? '–'}</td>
          <td class="number" data-label="${t.size}">${renderBytes(bytes)}</td>
          <td data-label="${t.release}">${manifest?.release ?? '–'}</td>
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
