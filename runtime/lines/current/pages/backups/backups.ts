/** /ui/backups: make one, look what there is, bring one back. */
import { getRouterParam, type H3Event, type HTTPResponse } from 'h3'
import { readBackupTime } from '../../../../core/state/backup.ts'
import { Fault } from '../../../../core/foundation/fault.ts'
import { banner, card, emptyState, progress, renderBytes } from '../../../../web/ui/elements.ts'
import {
  checkField,
  hidden,
  postButton,
  selectField,
  textField,
} from '../../../../web/ui/fields.ts'
import { refuse } from '../../../../web/http/faults.ts'
import { address, html, type Content, type Html } from '../../../../web/ui/html.ts'
import type { Route } from '../../../../web/http/route.ts'
import type { BackupJob } from '../../../../services/backup/backup-job.ts'
import type { StoredBackup } from '../../../../services/backup/backup-store.ts'
import { goBack, goTo } from '../frame/form-answer.ts'
import { renderStored } from './backup-table.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { renderEventList } from '../view/event-list.ts'

const PATH = '/ui/backups'

export const backupPages = (context: PageContext): readonly Route[] => {
  const { backups } = context.services
  return [
    { method: 'GET', path: PATH, access: 'page', handle: (event) => show(context, event) },
    {
      method: 'POST',
      path: PATH,
      access: 'page',
      async handle(event) {
        await backups.start('manual', context.site.by(event))
        return goTo(event, PATH)
      },
    },
    {
      method: 'POST',
      path: `${PATH}/:id/cancel`,
      access: 'page',
      async handle(event) {
        const job = await backups.cancel(idOf(event), context.site.by(event))
        return job === null
          ? goBack(context.site, event, PATH, { error: 'That backup is not under way.' })
          : goTo(event, PATH)
      },
    },
    {
      method: 'POST',
      path: `${PATH}/:id/delete`,
      access: 'page',
      handle: (event) => remove(context, event),
    },
    {
      method: 'GET',
      path: `${PATH}/:id/restore`,
      access: 'page',
      handle: (event) => ask(context, event, idOf(event), null),
    },
    {
      method: 'POST',
      path: `${PATH}/:id/restore`,
      access: 'page',
      takes: 'form',
      handle: (event, form) => restore(context, event, idOf(event), form),
    },
  ]
}

const idOf = (event: H3Event) => getRouterParam(event, 'id', { decode: true }) ?? ''

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { backups } = context.services
  const { site } = context
  const clock = context.clock()
  const [found, events] = await Promise.all([
    list(context),
    site.journal.list({ subject_kind: 'backup', limit: 10 }),
  ])
  const { stored, problem } = found
  const active = backups.jobs().filter(({ finished_at: at }) => at === null)
  const isBusy = active.length > 0 || backups.restoring() !== null
  const polling = isBusy
    ? html` hx-get="${PATH}" hx-select="#backups" hx-swap="morph:outerHTML" hx-trigger="every 1s"`
    : null
  return await context.show(event, {
    title: 'Backups',
    section: PATH,
    count: stored.length,
    actions: postButton({ action: PATH, label: 'Back up now', tone: 'primary' }),
    messages: html`${messageOf(context, event)}${problem === null ? done(event.url.searchParams) : banner('failed', problem)}`,
    body: html`<div id="backups" class="board" ${polling}>
      ${active.length === 0 && backups.restoring() === null ? null : card({ title: 'Under way', body: renderActive(active, backups.restoring()) })}
      ${stored.length === 0 ? emptyState('No backups yet', 'A backup holds machines with their images, disks and labels, the settings and the events. It can be restored here or by flasher-web restore.', postButton({ action: PATH, label: 'Back up now', tone: 'primary' })) : renderStored(stored, clock)}
      <div class="columns">
        <div>
          ${card({ title: 'Schedule', id: 'backup-schedule', body: renderSchedule(context) })}
        </div>
        <div>
          ${card({ title: 'What happened', body: events.length === 0 ? html`<p class="dim">Nothing yet.</p>` : renderEventList(events, clock) })}
        </div>
      </div>
    </div>`,
  })
}

interface Found {
  readonly stored: readonly StoredBackup[]
  /** Null: they could be listed. */
  readonly problem: string | null
}

/** The page works where they cannot be listed: it says why. */
async function list({ services }: PageContext): Promise<Found> {
  try {
    return { stored: await services.backups.list(), problem: null }
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    return { stored: [], problem: renderFault(thrown) }
  }
}

const renderFault = ({ message, hint }: Fault): string =>
  `${message[0]?.toUpperCase()}${message.slice(1)}.${hint === undefined ? '' : ` ${hint}`}`

function done(query: URLSearchParams): Content {
  const [restored, deleted] = ['restored', 'deleted'].map((name) => idIn(query, name))
  if (restored) {
    return banner(
      'done',
      html`Backup ${restored} is in force. What was there before is kept beside the database as
        <code>.bak</code>.`,
    )
  }
  return deleted ? banner('done', `Backup ${deleted} was removed.`) : null
}

/** An id of ours alone: whoever made the address, the page says nothing else. */
function idIn(query: URLSearchParams, name: string): string | null {
  const id = query.get(name)
  return id === null || readBackupTime(id) === null ? null : id
}

const renderActive = (
  jobs: readonly BackupJob[],
  restoring: {
    readonly backup_id: string
    readonly bytes_done: number
    readonly bytes_total: number | null
  } | null,
): Html =>
  html`<ul class="rows">
    ${jobs.map(
      ({ backup_id: id, status, bytes_done: bytes, bytes_total: total, trigger }) =>
        html`<li>
          <span class="grow"
            ><code>${id}</code> <span class="dim small">${trigger}, ${status}</span></span
          >${progress(status === 'queued' ? null : bytes, total, status === 'queued' ? 'waits' : 'copying')}${postButton({ action: `${PATH}/${id}/cancel`, label: 'Cancel' })}
        </li>`,
    )}
    ${
      restoring === null
        ? null
        : html`<li>
            <span class="grow">Restoring <code>${restoring.backup_id}</code></span
            >${progress(restoring.bytes_done, restoring.bytes_total, 'checking and copying')}
          </li>`
    }
  </ul>`

const CADENCES = { daily: 'every day', weekly: 'every week', manual: 'never by itself' } as const

/** The same form as on the settings page. */
export function renderSchedule({ services }: PageContext): Html {
  const { enabled, cadence, retention } = services.config.current().backup
  return html`<form method="post" action="/ui/settings/backup">
    ${checkField({ name: 'backup_enabled', label: 'Back up on schedule', checked: enabled })}
    ${selectField({
      name: 'backup_cadence',
      label: 'How often',
      value: cadence,
      options: Object.entries(CADENCES).map(([value, text]) => ({ value, text })),
    })}
    ${textField({ name: 'backup_retention_count', label: 'Backups to keep', type: 'number', value: String(retention), min: 1, max: 10_000, required: true })}
    ${hidden({ back: PATH })}
    <button>Save schedule</button>
  </form>`
}

async function ask(
  context: PageContext,
  event: H3Event,
  id: string,
  error: string | null,
): Promise<HTTPResponse> {
  const stored = await context.services.backups.find(id)
  if (stored === null) throw refuse(404, `there is no backup ${id.slice(0, 40)}`)
  const present = await context.site.machines.count()
  const { manifest, bytes } = stored
  return await context.show(event, {
    title: `Restore ${id}`,
    section: PATH,
    trail: html`<a href="${PATH}">Backups</a>`,
    body: html`<section class="card stack">
      <div class="facing">
        <div>
          <strong>${id}</strong><br /><span class="small dim"
            >${manifest === null ? 'hardware only' : html`${manifest.machines} machines, release ${manifest.release}`},
            ${renderBytes(bytes)}</span
          >
        </div>
        <span aria-label="replaces">→</span>
        <div>
          <strong>What is here now</strong><br /><span class="small dim"
            >${present} machines with their settings and events</span
          >
        </div>
      </div>
      ${manifest === null ? banner('needs-you', 'It holds hardware alone: machines come back as flasher-inventory, without image or disk.') : null}
      <p>
        All that is here now is replaced. The present database stays on the server as a
        <code>.bak</code> file.
      </p>
      <form method="post" action="${PATH}/${id}/restore">
        ${textField({ name: 'confirm', label: html`Type <code>${timeOfDay(id)}</code>, the time of the backup:`, mono: true, required: true, most: 12, error })}
        <div class="row">
          <a class="button" href="${PATH}">Cancel</a><button class="primary">Restore ${id}</button>
        </div>
      </form>
    </section>`,
  })
}

const timeOfDay = (id: string): string => /T(\d\d-\d\d)-/.exec(id)?.[1] ?? id

async function remove(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  try {
    const gone = await context.services.backups.remove(idOf(event), context.site.by(event))
    return gone === null
      ? goBack(context.site, event, PATH, { error: 'There is no such backup.' })
      : goTo(event, address(PATH, { deleted: gone.backup_id }))
  } catch (error) {
    return sayFault(context, event, error)
  }
}

function sayFault(context: PageContext, event: H3Event, error: unknown): HTTPResponse {
  if (!(error instanceof Fault)) throw error
  return goBack(context.site, event, PATH, { error: renderFault(error) })
}

async function restore(
  context: PageContext,
  event: H3Event,
  id: string,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  if (form.get('confirm')?.trim() !== timeOfDay(id)) {
    return await ask(context, event, id, `Type ${timeOfDay(id)} to go on.`)
  }
  try {
    await context.services.backups.restore(id, context.site.by(event))
  } catch (error) {
    return sayFault(context, event, error)
  }
  return goTo(event, address(PATH, { restored: id }))
}
