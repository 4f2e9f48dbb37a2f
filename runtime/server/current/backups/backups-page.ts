/** /ui/backups: create backups, list them, restore one. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import { readBackupTime, type MachineDifference } from '#fleet/backup/rules/backup.ts'
import { Fault } from '#kit/foundation/fault.ts'
import {
  badge,
  banner,
  card,
  emptyState,
  foldedCard,
  progress,
  refreshEvery,
  renderBytes,
} from '#kit/web/ui/elements.ts'
import { postButton, textField } from '#kit/web/ui/fields.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import type { Backups } from '#fleet/backup/backups.ts'
import type { Foreseen, Differences } from '#fleet/backup/restore.ts'
import type { BackupJob } from '#fleet/backup/backup-job.ts'
import type { StoredBackup } from '#fleet/backup/backup-store.ts'
import { buttonAt, formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import { renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { showRemoval, questionButton } from '#server/pages/question.ts'
import {
  renderEventList,
  readEventWords,
  renderFieldChanges,
  type EventWords,
} from '#server/current/view/event-list.ts'
import { fill, fillCount, pluralOf, upperFirst } from '#kit/foundation/text.ts'
import { ACTIONS, numberColumn, renderTable } from '#kit/web/ui/tables.ts'
import { renderExact, renderMoment, renderTime, type Clock } from '#kit/web/ui/times.ts'
import { parseDisarmed, type DisarmedMachine } from '#fleet/backup/disarming.ts'
import type { Journal } from '#fleet/state/journal.ts'

/** The rest is folded. */
const MAX_IN_SIGHT = 10
/** Further ones are only counted. */
const MAX_MACHINES = 200
const MAX_SETTINGS = 20

const RESTORE = {
  title: 'Restore the backup of {time}',
  hardware: 'hardware only, {size}',
  content: {
    one: '1 machine, release {release}, {size}',
    other: '{count} machines, release {release}, {size}',
  },
  replaces: 'replaces',
  current: 'The current state',
  present: {
    one: '1 machine, settings and events',
    other: '{count} machines, settings and events',
  },
  warning:
    'This backup holds hardware only: machines return without image or disk, and list their disks on network boot.',
  consequence:
    'This replaces everything. The current database is kept on the server as a {suffix} file.',
  disarms: {
    one: 'After the restore, this machine is disarmed. It keeps its image and disk; arm it again when you are ready:',
    other:
      'After the restore, these {count} machines are disarmed. They keep their images and disks; arm them again when you are ready:',
  },
  disarmsNone: 'No machine is disarmed.',
  changes: {
    title: { one: 'What changes: 1 machine', other: 'What changes: {count} machines' },
    none: 'Image, disk, mode, name and labels of all machines stay as they are.',
    counts: {
      goes: { one: '{count} removed', other: '{count} removed' },
      returns: { one: '{count} restored', other: '{count} restored' },
      changes: { one: '{count} changed back', other: '{count} changed back' },
      unchanged: { one: '{count} unchanged', other: '{count} unchanged' },
    },
    rest: { one: 'One more machine', other: '{count} more machines' },
    kinds: {
      goes: 'is not in the backup; removed until its next network boot',
      returns: 'was deleted later; restored',
      changes: 'changes back:',
    },
    more: 'and {count} more',
    settings: {
      one: 'This setting is changed back or reset: {names}.',
      other: 'These {count} settings are changed back or reset: {names}.',
    },
  },
  confirm: 'Type {time} to replace the current state:',
  button: 'Restore this backup',
} as const

/** Nothing where the backup does not say (null). */
function renderDifferences(found: Differences | null, context: CurrentContext): Content {
  if (found === null) return null
  const { machines, settings } = found
  return html`${machines.length === 0 ? html`<p>${RESTORE.changes.none}</p>` : renderMachines(found, context)}
  ${settings.length === 0 ? null : html`<p>${renderSettings(settings, readEventWords(context))}</p>`}`
}

function renderMachines(found: Differences, context: CurrentContext): Html {
  const { machines } = found
  const words = readEventWords(context)
  const render = (listed: Differences['machines']) =>
    listed.map((machine) => renderMachine(machine, words))
  const folded = machines.slice(MAX_IN_SIGHT, MAX_MACHINES)
  const more = machines.length - MAX_MACHINES
  return html`<h2>${fillCount(RESTORE.changes.title, machines.length)}</h2>
    <p>${sayCounts(found)}</p>
    <ul class="rows differences">
      ${render(machines.slice(0, MAX_IN_SIGHT))}
    </ul>
    ${
      folded.length === 0
        ? null
        : html`<details>
            <summary>${fillCount(RESTORE.changes.rest, machines.length - MAX_IN_SIGHT)}</summary>
            <ul class="rows differences">
              ${render(folded)}
              ${more > 0 ? html`<li class="dim">${fill(RESTORE.changes.more, { count: more })}</li>` : null}
            </ul>
          </details>`
    }`
}

/** `2 are forgotten, 1 comes back, 40 stay as they are.` */
function sayCounts({ machines, unchanged }: Differences): string {
  const counts = Map.groupBy(machines, ({ kind }) => kind)
  const said = (['goes', 'returns', 'changes'] as const).map(
    (kind) => [RESTORE.changes.counts[kind], counts.get(kind)?.length ?? 0] as const,
  )
  return `${[...said, [RESTORE.changes.counts.unchanged, unchanged] as const]
    .filter(([, count]) => count > 0)
    .map(([text, count]) => fillCount(text, count))
    .join(', ')}.`
}

function renderMachine({ mac, name, kind, changes }: MachineDifference, words: EventWords): Html {
  const label = html`<bdi>${name ?? mac}</bdi>`
  return html`<li>
    <div class="grow">
      <p>
        ${kind === 'returns' ? html`<strong>${label}</strong>` : html`<a href="/ui/machines/${mac}">${label}</a>`}
        ${name === null ? null : html`<code class="small dim">${mac}</code>`}
        <span class="dim">${RESTORE.changes.kinds[kind]}</span>
      </p>
      ${renderFieldChanges(changes, mac, words, true)}
    </div>
  </li>`
}

function renderSettings(names: readonly string[], { findSetting }: EventWords): string {
  const shown = names.slice(0, MAX_SETTINGS).map((name) => findSetting(name) ?? name)
  const more = names.length - shown.length
  const listed = [
    ...shown,
    ...(more > 0 ? [fill(RESTORE.changes.more, { count: more })] : []),
  ].join(', ')
  return fill(pluralOf(RESTORE.changes.settings, names.length), {
    count: names.length,
    names: listed,
  })
}

const PATH = '/ui/backups'

export const BACKUP_PAGES = [
  pageAt(PATH, 'read', show),
  buttonAt(PATH, 'admin', async (context: CurrentContext) => {
    await context.services.backups.start('manual', context.by())
    return context.goTo(PATH)
  }),
  buttonAt(`${PATH}/:id/cancel`, 'admin', async (context: CurrentContext) => {
    const job = await context.services.backups.cancel(idOf(context), context.by())
    return job === null
      ? context.goBack(PATH, { error: 'That backup is not running.' })
      : context.goTo(PATH)
  }),
  removalAt(`${PATH}/:id/delete`, 'admin', askRemoval, remove),
  pageAt(`${PATH}/:id/restore`, 'admin', (context: CurrentContext) => ask(context, null)),
  formAt(`${PATH}/:id/restore`, 'admin', restore),
]

function idOf({ event }: CurrentContext): string {
  return getRouterParam(event, 'id', { decode: true }) ?? ''
}

async function show(context: CurrentContext): Promise<Answer> {
  const { backups } = context.services
  const clock = context.clock()
  const [{ stored, problem }, events] = await Promise.all([
    list(context),
    context.site.journal.list({ subject_kind: 'backup', limit: 10 }),
  ])
  const active = backups.jobs().filter(({ finished_at: at }) => at === null)
  const restoring = backups.restoring()
  const isBusy = active.length > 0 || restoring !== null
  const start = postButton({ action: PATH, label: 'Back up now', tone: 'primary' })
  return await context.show({
    title: 'Backups',
    learn: 'server.html#backups',
    count: stored.length,
    actions: start,
    messages: html`${context.message()}${problem === null ? await renderDone(context, clock) : banner('failed', problem)}`,
    body: html`<div class="board" ${refreshEvery('backups', PATH, isBusy ? 1 : null)}>
      ${isBusy ? card({ title: 'Running', body: html`${renderActive(active, restoring, clock)}${renderCurlBlock(context, active.map(callCancel), 'curl-jobs')}` }) : null}
      ${
        stored.length === 0
          ? emptyState(
              'No backups yet',
              'A backup holds the machines with their images, disks and labels, the settings and the events. Restore it here or with flasher-web restore.',
              start,
            )
          : renderStored(stored, clock)
      }
      ${card({ title: 'Schedule', id: 'backup-schedule', body: html`${renderSchedule(context)}${renderCurlBlock(context, [callStart], 'curl-start')}` })}
      ${foldedCard({ title: 'Activity', id: 'activity', about: 'The newest events of backups', isOpen: false, body: renderEventList(events, clock) })}
    </div>`,
  })
}

const callStart: CurlCall = {
  method: 'POST',
  path: '/workers/backups',
  scope: 'admin',
  label: 'Back up now',
}

const callCancel = ({ backup_id: id }: BackupJob): CurlCall => ({
  method: 'DELETE',
  path: `/workers/backups/${encodeURIComponent(id)}`,
  scope: 'admin',
})

/** If they cannot be listed, the page says why. */
async function list({ services }: CurrentContext) {
  try {
    return { stored: await services.backups.list(), problem: null }
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    return { stored: [], problem: renderFault(thrown) }
  }
}

const renderFault = ({ message, hint }: Fault): string =>
  `${upperFirst(message)}.${hint === undefined ? '' : ` ${hint}`}`

async function renderDone({ query, site }: CurrentContext, clock: Clock): Promise<Content> {
  const [restored, deleted] = ['restored', 'deleted'].map((name) => idIn(query, name))
  if (restored) {
    const suffix = html`<code>.bak</code>`
    return html`${banner('done', html`The backup of ${nameBackup(restored, clock)} was restored. The previous state was kept beside the database as ${suffix}.`)}
    ${await renderDisarmed(site.journal, restored)}`
  }
  return deleted ? banner('done', `The backup of ${nameBackup(deleted, clock)} was removed.`) : null
}

/** By its start: `2026-11-21 06:55:53 UTC`. */
function nameBackup(id: string, { zone }: Clock): string {
  const at = readBackupTime(id)
  return at === null ? id : renderExact(new Date(at), zone)
}

/** Only a valid id: addresses can be made up. */
function idIn(query: URLSearchParams, name: string): string | null {
  const id = query.get(name)
  return id === null || readBackupTime(id) === null ? null : id
}

const TRIGGERS = { manual: 'manual', scheduled: 'scheduled' } as const

const JOBS = {
  queued: 'queued',
  running: 'running',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
} as const

const renderActive = (
  jobs: readonly BackupJob[],
  restoring: ReturnType<Backups['restoring']>,
  clock: Clock,
): Html =>
  html`<ul class="rows">
    ${jobs.map(
      ({ backup_id: id, status, bytes_done: bytes, bytes_total: total, trigger }) =>
        html`<li>
          <span class="grow"
            >${nameBackup(id, clock)}
            <span class="dim small">${TRIGGERS[trigger]}, ${JOBS[status]}</span></span
          >${progress(status === 'queued' ? null : bytes, total, status === 'queued' ? 'waiting' : 'copying')}${postButton({ action: `${PATH}/${id}/cancel`, label: 'Cancel' })}
        </li>`,
    )}
    ${
      restoring === null
        ? null
        : html`<li>
            <span class="grow"
              >Restoring the backup of ${nameBackup(restoring.backup_id, clock)}</span
            >${progress(restoring.bytes_done, restoring.bytes_total, 'checking and copying')}
          </li>`
    }
  </ul>`

const SCHEDULE_TEXTS = {
  daily: 'A backup is made every day.',
  weekly: 'A backup is made every week.',
  manual: 'Backups are only made with the button above.',
} as const

function renderSchedule({ services }: CurrentContext): Html {
  const { enabled, cadence, retention } = services.config.current().backup
  const isOff = !enabled || cadence === 'manual'
  const text = isOff ? SCHEDULE_TEXTS.manual : SCHEDULE_TEXTS[cadence]
  return html`<p>
      ${text}
      ${fillCount({ one: 'The newest backup is kept.', other: 'The newest {count} backups are kept.' }, retention)}
    </p>
    <p><a class="button" href="/ui/settings#backup-schedule">Change schedule</a></p>`
}

async function ask(context: CurrentContext, error: string | null): Promise<Answer> {
  const stored = await find(context)
  const { backup_id: id } = stored
  const present = await context.site.machines.count()
  const time = nameBackup(id, context.clock())
  let foreseen: Foreseen | null
  try {
    foreseen = await context.services.backups.foresee(id)
  } catch (thrown) {
    return refuseFault(context, thrown)
  }
  return await context.show({
    title: fill(RESTORE.title, { time }),
    trail: html`<a href="${PATH}">Backups</a>`,
    body: html`<section class="card stack">
      <div class="facing">
        <div>
          <strong>${time}</strong><br /><span class="small dim"
            >${renderContent(RESTORE, stored)}</span
          >
        </div>
        <span aria-label="${RESTORE.replaces}">→</span>
        <div>
          <strong>${RESTORE.current}</strong><br /><span class="small dim"
            >${fillCount(RESTORE.present, present)}</span
          >
        </div>
      </div>
      ${stored.manifest === null ? banner('needs-you', RESTORE.warning) : null}
      ${renderForeseen(foreseen?.disarmed ?? [])}
      ${renderDifferences(foreseen?.differences ?? null, context)}
      <p>${fillHtml(RESTORE.consequence, { suffix: html`<code>.bak</code>` })}</p>
      <form method="post" action="${PATH}/${id}/restore">
        ${textField({ name: 'confirm', label: fillHtml(RESTORE.confirm, { time: html`<code>${timeOfDay(id)}</code>` }), mono: true, required: true, maxLength: 12, error })}
        <div class="row">
          <a class="button" href="${PATH}">Cancel</a
          ><button class="danger">${RESTORE.button}</button>
        </div>
      </form>
      ${renderCurlBlock(context, [
        {
          method: 'POST',
          path: `/workers/backups/${encodeURIComponent(id)}/restore`,
          scope: 'admin',
        },
      ])}
    </section>`,
  })
}

const REMOVAL = {
  title: 'Remove the backup of {time}',
  question: 'Remove the backup of {time}?',
  hardware:
    'It holds hardware only, {size}. You cannot restore it afterwards. The server itself is not changed.',
  content: {
    one: 'It holds 1 machine, {size}. You cannot restore it afterwards. The server itself is not changed.',
    other:
      'It holds {count} machines, {size}. You cannot restore it afterwards. The server itself is not changed.',
  },
  button: 'Remove backup',
} as const

function renderContent(
  texts: typeof RESTORE | typeof REMOVAL,
  { manifest, bytes }: StoredBackup,
): Html {
  const size = renderBytes(bytes)
  if (manifest === null) return fillHtml(texts.hardware, { size })
  const { machines: count, release } = manifest
  return fillHtml(pluralOf(texts.content, count), { count, release, size })
}

async function find(context: CurrentContext): Promise<StoredBackup> {
  const id = idOf(context)
  const stored = await context.services.backups.find(id)
  if (stored === null) throw refuse(404, `there is no backup ${id.slice(0, 40)}`)
  return stored
}

const timeOfDay = (id: string): string => /T(\d\d-\d\d)-/.exec(id)?.[1] ?? id

async function askRemoval(context: CurrentContext): Promise<Answer> {
  const stored = await find(context)
  const time = nameBackup(stored.backup_id, context.clock())
  return await showRemoval(context, {
    title: fill(REMOVAL.title, { time }),
    trail: html`<a href="${PATH}">Backups</a>`,
    question: fillHtml(REMOVAL.question, { time }),
    body: html`<p>${renderContent(REMOVAL, stored)}</p>`,
    cancel: PATH,
    button: REMOVAL.button,
    calls: [
      {
        method: 'DELETE',
        path: `${PATH}/${encodeURIComponent(stored.backup_id)}`,
        scope: 'admin',
      },
    ],
  })
}

async function remove(context: CurrentContext): Promise<Answer> {
  try {
    const gone = await context.services.backups.remove(idOf(context), context.by())
    return gone === null
      ? context.goBack(PATH, { error: 'There is no such backup.' })
      : context.goTo(address(PATH, { deleted: gone.backup_id }))
  } catch (error) {
    return refuseFault(context, error)
  }
}

function refuseFault(context: CurrentContext, error: unknown): Answer {
  if (!(error instanceof Fault)) throw error
  return context.goBack(PATH, { error: renderFault(error) })
}

async function restore(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const id = idOf(context)
  if (form.get('confirm')?.trim() !== timeOfDay(id)) {
    return await ask(context, `Type ${timeOfDay(id)} to continue.`)
  }
  try {
    await context.services.backups.restore(id, context.by())
  } catch (error) {
    return refuseFault(context, error)
  }
  return context.goTo(address(PATH, { restored: id }))
}

const renderStored = (stored: readonly StoredBackup[], clock: Clock): Html =>
  renderTable({
    caption: 'Backups that can be restored, newest first',
    columns: [
      'Backup',
      'Created',
      numberColumn('Machines'),
      numberColumn('Size'),
      'Release',
      ACTIONS,
    ],
    rows: stored.map(
      ({ backup_id: id, manifest, bytes }) =>
        html`<tr>
          <th scope="row">
            ${renderName(id, clock)} ${manifest === null ? badge('ready', 'hardware only') : null}
            <br /><code class="small dim">${id}</code>
          </th>
          <td class="nowrap" data-label="Created">${renderTime(readBackupTime(id), clock)}</td>
          <td class="number" data-label="Machines">${manifest?.machines ?? '–'}</td>
          <td class="number" data-label="Size">${renderBytes(bytes)}</td>
          <td data-label="Release">${manifest?.release ?? '–'}</td>
          <td>
            <div class="row">
              <a class="button" href="${PATH}/${id}/download">Download</a>
              <a class="button" href="${PATH}/${id}/restore">Restore…</a>
              ${questionButton({ action: `${PATH}/${id}/delete`, label: 'Remove…', tone: 'danger' })}
            </div>
          </td>
        </tr>`,
    ),
  })

function renderName(id: string, { zone }: Clock): Html {
  const at = readBackupTime(id)
  return at === null ? html`${id}` : renderMoment(new Date(at), zone)
}

/** Also says that nothing is armed. */
const renderForeseen = (machines: readonly DisarmedMachine[]): Html =>
  machines.length === 0
    ? html`<p>${RESTORE.disarmsNone}</p>`
    : banner(
        'needs-you',
        html`<p>${fillCount(RESTORE.disarms, machines.length)}</p>
          ${renderNames(machines)}`,
      )

/** Null: nothing was armed. */
async function renderDisarmed(journal: Journal, id: string): Promise<Html | null> {
  const [event] = await journal.list({ kind: 'backup.restored', subject_id: id, limit: 1 })
  const disarmed = parseDisarmed(event?.details)
  if (disarmed.length === 0) return null
  return banner(
    'needs-you',
    html`<p>
        ${fillCount({ one: 'This machine is not flashed or captured until you order it again on its page:', other: 'These {count} machines are not flashed or captured until you order it again on their pages:' }, disarmed.length)}
      </p>
      ${renderNames(disarmed)}`,
  )
}

const renderNames = (machines: readonly DisarmedMachine[]): Html =>
  html`<ul>
    ${machines.map(
      ({ mac, name }) =>
        html`<li>
          <a href="/ui/machines/${mac}"><bdi>${name ?? mac}</bdi></a>
          ${name === null ? null : html`<code>${mac}</code>`}
        </li>`,
    )}
  </ul>`
