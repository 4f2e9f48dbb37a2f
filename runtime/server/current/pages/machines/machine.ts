/** /ui/machines/{mac}: what happens next, the configuration of the machine, its facts and its history. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { card, icon } from '#kit/web/ui/elements.ts'
import { postButton } from '#kit/web/ui/fields.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { address, html, type Html } from '#kit/web/ui/html.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { localPath } from '#kit/web/answers/local-path.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import type { Machine } from '#server/current/rules/machine.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { renderCaptureCard } from '#server/current/captures/capture-card.ts'
import { renderAssignment, renderConfigurationForm } from './configuration-form.ts'
import { renderFacts } from './machine-facts.ts'
import { MACHINE_POSTS } from './machine-posts.ts'
import { renderPowerCard } from '../power/power-card.ts'
import { POWER_POSTS } from '../power/power-posts.ts'
import { renderFirstBootCard } from '../first-boot/machine-card.ts'
import { callSave } from './machine-calls.ts'
import { FIELDS, readValues, valuesOf, WRONG_FIELD, type FormValues } from './machine-form.ts'
import { renderDone, renderNow } from './now-card.ts'
import { readEventWords } from '../view/event-words.ts'
import { labelLink } from '../view/machine-row.ts'
import { nameOf } from '../view/machine-view.ts'
import { renderUndo } from '../view/undo-button.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'

const t = PAGES.machine.page

const [MAX_RUNS, MAX_EVENTS] = [8, 20]

export const MACHINE_PAGES = [pageAt('/ui/machines/:mac', show), ...MACHINE_POSTS, ...POWER_POSTS]

async function show(context: CurrentContext): Promise<Answer> {
  const { site } = context
  const mac = readMac(context.event)
  const notice = context.notice()
  const machine = await site.machines.find(mac)
  if (machine === null) {
    const hint = notice?.error ?? t.missingHint
    throw refuse(404, fill(t.missing, { mac }), { hint })
  }
  const view = context.view(machine)
  const mayChange = site.mayOpen(context.event, '/ui/machines/:mac', 'POST')
  const [posted, events] = await Promise.all([
    site.machines.findHardware(mac),
    site.journal.list({ subject_id: mac, limit: MAX_EVENTS }),
  ])
  const runs = site.runs.list({ mac, limit: MAX_RUNS }).map(({ run }) => run)
  const { entries, error } = site.catalog.snapshot()
  const back = backOf(context)
  const form = renderConfigurationForm({
    machine,
    isFlashed: view.boot.rule === 'flashed',
    images: entries,
    channels: context.services.channels.list(),
    catalogError: error,
    values: shownValues(context, machine, notice),
    back,
    isTyped: FIELDS.some((name) => notice?.typed[name] !== undefined),
    refused: refusedIn(notice),
  })
  return await context.show({
    title: nameOf(machine),
    section: '/ui/machines',
    trail: html`<a href="${back}">${PAGES.frame.titles.machines}</a>`,
    heading: renderHeading(machine),
    updates: address('/events/machines', { q: `mac:${mac}` }),
    actions: html`${renderUndo(context, mac)}${renderLock(machine)}`,
    messages: html`${context.message()}${renderDone(context.query, view)}`,
    body: html`${renderNow(context, view, machinePath(mac), runs.find(isFlash) ?? null)}
    ${renderPowerCard(context, machine, notice)}
    ${card({ title: PAGES.machine.form.title, id: 'intent', body: mayChange ? html`${form}${renderCurlBlock(context, [callSave(machine)])}` : renderAssignment(view) })}
    ${mayChange ? html`${await renderFirstBootCard(context, machine)} ${renderCaptureCard(context, machine, notice)}` : null}
    ${renderFacts({ machine, posted, runs, events, clock: context.clock(), words: readEventWords(context) })}`,
  })
}

const isFlash = ({ mode }: Run) => mode !== 'capture'

/**
 * A refused form comes back as typed. A refresh during an edit (`configuration.js`) says which
 * image and disk are selected; a made-up address does not.
 */
function shownValues(
  { event, query }: CurrentContext,
  machine: Machine,
  notice: Notice | null,
): FormValues {
  const typed = readValues(new URLSearchParams(notice?.typed), valuesOf(machine))
  if (!event.req.headers.has('hx-request')) return typed
  return {
    ...typed,
    bty_image_ref: query.get('bty_image_ref') ?? typed.bty_image_ref,
    target_disk_serial: query.get('target_disk_serial') ?? typed.target_disk_serial,
  }
}

function refusedIn(notice: Notice | null) {
  const field = notice?.typed[WRONG_FIELD]
  return notice === null || field === undefined ? null : { field, error: notice.error }
}

/** The table that led here, with its search. */
function backOf({ event, query }: CurrentContext): string {
  const given = query.get('back')
  if (given !== null) return localPath(given, '/ui/machines')
  const from = URL.parse(event.req.headers.get('referer') ?? '')
  return from?.pathname === '/ui/machines' ? `${from.pathname}${from.search}` : '/ui/machines'
}

const renderHeading = (machine: Machine): Html =>
  html`<bdi>${nameOf(machine)}</bdi>
    ${nameOf(machine) === machine.mac ? null : html`<span class="count mono">${machine.mac}</span>`}
    ${machine.locked ? html`<span class="tag">${icon('lock')} ${t.locked}</span>` : null}
    ${machine.labels.map((label) => html`${labelLink(label)} `)}`

const renderLock = ({ mac, locked }: Machine): Html =>
  locked
    ? postButton({ action: `${machinePath(mac)}/do/unlock`, label: t.unlock })
    : postButton({ action: `${machinePath(mac)}/do/lock`, label: html`${icon('lock')}${t.lock}` })
