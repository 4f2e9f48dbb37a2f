/** /ui/backups: create backups, list them, restore one. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import { readBackupTime, type MachineDifference } from '#fleet/backup/rules/backup.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { banner, card, emptyState, progress, renderBytes, badge } from '#kit/web/ui/elements.ts'
import { postButton, textField } from '#kit/web/ui/fields.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { refreshEvery } from '#kit/web/ui/refresh.ts'
import type { Backups } from '#fleet/backup/backups.ts'
import type { Foreseen, Differences } from '#fleet/backup/restore.ts'
import type { BackupJob } from '#fleet/backup/backup-job.ts'
import type { StoredBackup } from '#fleet/backup/backup-store.ts'
import { buttonAt, formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import { renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { showRemoval, questionButton } from '#server/pages/question.ts'
import {
  renderEventList,
  readEventWords,
  renderFieldChanges,
  type EventWords,
} from '../view/event-list.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, fillCount, pluralOf } from '#kit/texts/text.ts'
import { ACTIONS, numberColumn, renderTable } from '#kit/web/ui/tables.ts'
import { renderExact, renderMoment, renderTime, type Clock } from '#kit/web/ui/times.ts'
import { parseDisarmed, type DisarmedMachine } from '#fleet/backup/disarming.ts'
import type { Journal } from '#fleet/state/journal.ts'

/** The rest is folded. */
const MAX_IN_SIGHT = 10
/** Further ones are only counted. */
const MAX_MACHINES = 200
const MAX_SETTINGS = 20

/** Nothing where the backup does not say (null). */
function renderDifferences(found: Differences | null, context: CurrentContext): Content {
  if (found === null) return null
  const { machines, settings } = found
  return html`${machines.length === 0 ? html`<p>${PAGES.backups.restore.changes.none}</p>` : renderMachines(found, context)}
  ${settings.length === 0 ? null : html`<p>${renderSettings(settings, readEventWords(context))}</p>`}`
}

function renderMachines(found: Differences, context: CurrentContext): Html {
  const { machines } = found
  const words = readEventWords(context)
  const render = (listed: Differences['machines']) =>
    listed.map((machine) => renderMachine(machine, words))
  const folded = machines.slice(MAX_IN_SIGHT, MAX_MACHINES)
  const more = machines.length - MAX_MACHINES
  return html`<h2>${fillCount(PAGES.backups.restore.changes.title, machines.length)}</h2>
    <p>${sayCounts(found)}</p>
    <ul class="rows differences">
      ${render(machines.slice(0, MAX_IN_SIGHT))}
    </ul>
    ${
      folded.length === 0
        ? null
        : html`<details>
            <summary>
              ${fillCount(PAGES.backups.restore.changes.rest, machines.length - MAX_IN_SIGHT)}
            </summary>
            <ul class="rows differences">
              ${render(folded)}
              ${more > 0 ? html`<li class="dim">${fill(PAGES.backups.restore.changes.more, { count: more })}</li>` : null}
            </ul>
          </details>`
    }`
}

/** `2 are forgotten, 1 comes back, 40 stay as they are.` */
function sayCounts({ machines, unchanged }: Differences): string {
  const counts = Map.groupBy(machines, ({ kind }) => kind)
  const said = (['goes', 'returns', 'changes'] as const).map(
    (kind) => [PAGES.backups.restore.changes.counts[kind], counts.get(kind)?.length ?? 0] as const,
  )
  return `${[...said, [PAGES.backups.restore.changes.counts.unchanged, unchanged] as const]
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
        <span class="dim">${PAGES.backups.restore.changes.kinds[kind]}</span>
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
    ...(more > 0 ? [fill(PAGES.backups.restore.changes.more, { count: more })] : []),
  ].join(', ')
  return fill(pluralOf(PAGES.backups.restore.changes.settings, names.length), {
    count: names.length,
    names: listed,
  })
}

const t = PAGES.backups

const PATH = '/ui/backups'

export const BACKUP_PAGES = [
  pageAt(PATH, 'read', show),
  buttonAt(PATH, 'admin', async (context: CurrentContext) => {
    await context.services.backups.start('manual', context.by())
    return context.goTo(PATH)
  }),
  buttonAt(`${PATH}/:id/cancel`, 'admin', async (context: CurrentContext) => {
    const job = await context.services.backups.cancel(idOf(context), context.by())
    return job === null ? context.goBack(PATH, { error: t.errors.notRunning }) : context.goTo(PATH)
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
  const start = postButton({ action: PATH, label: t.start, tone: 'primary' })
  return await context.show({
    title: PAGES.frame.titles.backups,
    section: PATH,
    count: stored.length,
    actions: start,
    messages: html`${context.message()}${problem === null ? await renderDone(context, clock) : banner('failed', problem)}`,
    body: html`<div class="board" ${refreshEvery('backups', PATH, isBusy ? 1 : null)}>
      ${isBusy ? card({ title: t.running, body: html`${renderActive(active, restoring, clock)}${renderCurlBlock(context, active.map(callCancel), 'curl-jobs')}` }) : null}
      ${
        stored.length === 0
          ? emptyState(t.empty.title, t.empty.text, start)
          : renderStored(stored, clock)
      }
      <div class="columns">
        <div>
          ${card({ title: t.schedule.title, id: 'backup-schedule', body: html`${renderSchedule(context)}${renderCurlBlock(context, [callStart], 'curl-start')}` })}
        </div>
        <div>${card({ title: t.activity, body: renderEventList(events, clock) })}</div>
      </div>
    </div>`,
  })
}

const callStart: CurlCall = {
  method: 'POST',
  path: '/workers/backups',
  scope: 'admin',
  label: t.start,
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
  `${message[0]?.toUpperCase()}${message.slice(1)}.${hint === undefined ? '' : ` ${hint}`}`

async function renderDone({ query, site }: CurrentContext, clock: Clock): Promise<Content> {
  const [restored, deleted] = ['restored', 'deleted'].map((name) => idIn(query, name))
  if (restored) {
    const suffix = html`<code>.bak</code>`
    return html`${banner('done', fillHtml(t.done.restored, { time: nameBackup(restored, clock), suffix }))}
    ${await renderDisarmed(site.journal, restored)}`
  }
  return deleted ? banner('done', fill(t.done.removed, { time: nameBackup(deleted, clock) })) : null
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
            <span class="dim small"
              >${fill(t.jobs.state, { trigger: t.jobs.triggers[trigger], state: PAGES.frame.jobs[status] })}</span
            ></span
          >${progress(status === 'queued' ? null : bytes, total, status === 'queued' ? t.jobs.waiting : t.jobs.copying)}${postButton({ action: `${PATH}/${id}/cancel`, label: PAGES.frame.cancel })}
        </li>`,
    )}
    ${
      restoring === null
        ? null
        : html`<li>
            <span class="grow"
              >${fill(t.jobs.restoring, { time: nameBackup(restoring.backup_id, clock) })}</span
            >${progress(restoring.bytes_done, restoring.bytes_total, t.jobs.checking)}
          </li>`
    }
  </ul>`

function renderSchedule({ services }: CurrentContext): Html {
  const { enabled, cadence, retention } = services.config.current().backup
  const isOff = !enabled || cadence === 'manual'
  const text = isOff ? t.schedule.texts.manual : t.schedule.texts[cadence]
  return html`<p>${text} ${fillCount(t.schedule.kept, retention)}</p>
    <p><a class="button" href="/ui/settings#backup-schedule">${t.schedule.change}</a></p>`
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
    title: fill(t.restore.title, { time }),
    section: PATH,
    trail: html`<a href="${PATH}">${PAGES.frame.titles.backups}</a>`,
    body: html`<section class="card stack">
      <div class="facing">
        <div>
          <strong>${time}</strong><br /><span class="small dim"
            >${renderContent(t.restore, stored)}</span
          >
        </div>
        <span aria-label="${t.restore.replaces}">→</span>
        <div>
          <strong>${t.restore.current}</strong><br /><span class="small dim"
            >${fillCount(t.restore.present, present)}</span
          >
        </div>
      </div>
      ${stored.manifest === null ? banner('needs-you', t.restore.warning) : null}
      ${renderForeseen(foreseen?.disarmed ?? [])}
      ${renderDifferences(foreseen?.differences ?? null, context)}
      <p>${fillHtml(t.restore.consequence, { suffix: html`<code>.bak</code>` })}</p>
      <form method="post" action="${PATH}/${id}/restore">
        ${textField({ name: 'confirm', label: fillHtml(t.restore.confirm, { time: html`<code>${timeOfDay(id)}</code>` }), mono: true, required: true, maxLength: 12, error })}
        <div class="row">
          <a class="button" href="${PATH}">${PAGES.frame.cancel}</a
          ><button class="danger">${t.restore.button}</button>
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

function renderContent(
  texts: typeof t.restore | typeof t.removal,
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
    title: fill(t.removal.title, { time }),
    section: PATH,
    trail: html`<a href="${PATH}">${PAGES.frame.titles.backups}</a>`,
    question: fillHtml(t.removal.question, { time }),
    body: html`<p>${renderContent(t.removal, stored)}</p>`,
    cancel: PATH,
    button: t.removal.button,
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
      ? context.goBack(PATH, { error: t.errors.unknown })
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
    return await ask(context, fill(t.errors.confirm, { time: timeOfDay(id) }))
  }
  try {
    await context.services.backups.restore(id, context.by())
  } catch (error) {
    return refuseFault(context, error)
  }
  return context.goTo(address(PATH, { restored: id }))
}

const columns = PAGES.backups.list

const renderStored = (stored: readonly StoredBackup[], clock: Clock): Html =>
  renderTable({
    caption: columns.caption,
    columns: [
      columns.backup,
      columns.created,
      numberColumn(columns.machines),
      numberColumn(columns.size),
      columns.release,
      ACTIONS,
    ],
    rows: stored.map(
      ({ backup_id: id, manifest, bytes }) =>
        html`<tr>
          <th scope="row">
            ${renderName(id, clock)} ${manifest === null ? badge('ready', columns.hardware) : null}
            <br /><code class="small dim">${id}</code>
          </th>
          <td class="nowrap" data-label="${columns.created}">
            ${renderTime(readBackupTime(id), clock)}
          </td>
          <td class="number" data-label="${columns.machines}">${manifest?.machines ?? '–'}</td>
          <td class="number" data-label="${columns.size}">${renderBytes(bytes)}</td>
          <td data-label="${columns.release}">${manifest?.release ?? '–'}</td>
          <td>
            <div class="row">
              <a class="button" href="${PATH}/${id}/download">${columns.download}</a>
              <a class="button" href="${PATH}/${id}/restore">${columns.restore}</a>
              ${questionButton({ action: `${PATH}/${id}/delete`, label: columns.remove, tone: 'danger' })}
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
    ? html`<p>${t.restore.disarmsNone}</p>`
    : banner(
        'needs-you',
        html`<p>${fillCount(t.restore.disarms, machines.length)}</p>
          ${renderNames(machines)}`,
      )

/** Null: nothing was armed. */
async function renderDisarmed(journal: Journal, id: string): Promise<Html | null> {
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
          <a href="/ui/machines/${mac}"><bdi>${name ?? mac}</bdi></a>
          ${name === null ? null : html`<code>${mac}</code>`}
        </li>`,
    )}
  </ul>`
