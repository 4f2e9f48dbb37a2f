/** The first card of a machine's page: its state, why it failed, what happens next, and what can be done. */
import { MODES, USUAL_FLASH_MODE, isFlashMode } from './rules/boot-mode.ts'
import { renderBoot } from '#fleet/boot/rules/boot-script.ts'
import { canExpire } from './rules/disarming.ts'
import { channelOf, type Machine } from './rules/machine.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { badge, banner, copyBlock, refreshOnNews } from '#kit/web/ui/elements.ts'
import { postButton } from '#kit/web/ui/fields.ts'
import { attributes, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderMinute, renderMoment, renderTime, type Clock } from '#kit/web/ui/times.ts'

import type { CurrentContext } from '#server/current/view/page-context.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import { questionButton } from '#server/pages/question.ts'
import {
  isWaiting,
  willFlash,
  type MachineView,
  renderSentence,
} from '#server/current/view/machine-view.ts'
import {
  machinePath,
  nameDisk,
  renderBar,
  renderStateBadge,
} from '#server/pages/machines/machines-list.ts'
import { runPath } from '#server/current/view/run-table.ts'
import { batchPath, nameOfBatch } from '#server/current/view/batch-view.ts'
import { listActions, type MachineButton, listButtonCalls } from './machine-calls.ts'

/** What is being edited stays (`configuration.js`). */
const ALSO = '#facts:morph,#intent:morph,#intent-title:morph,#naming:morph,#power-state:morph'

export const renderNow = (
  context: CurrentContext,
  view: MachineView,
  here: string,
  lastRun: Run | null,
): Html =>
  html`<section
    class="card stack"
    ${attributes({
      'data-state': view.view.state,
      'hx-select-oob': ALSO,
      'hx-disinherit': '*',
    })}
    ${refreshOnNews('now', here, 1000, view.run === null ? null : 20)}
  >
    ${renderStateBadge(view.view)}
    ${view.view.state === 'failed' ? renderFailure(view, lastRun) : renderState(context, view, lastRun)}
    ${renderDrift(context, view)} ${renderButtons(view, here)}
    ${renderCurlBlock(context, listButtonCalls(view, canUndo(context, view)), 'curl-now')}
  </section>`

/** A flash gives a machine what its channel points to by then. Null: its image is the same. */
export function findMovedChannel({ services }: CurrentContext, machine: Machine): string | null {
  const channel = channelOf(machine)
  const ref = channel === null ? null : services.channels.find(channel)?.bty_image_ref
  return ref === machine.bty_image_ref ? null : channel
}

export function renderAgain(context: CurrentContext, { machine }: MachineView): Html {
  const moved = findMovedChannel(context, machine)
  const label = moved === null ? 'As before…' : html`With the new image of <bdi>${moved}</bdi>…`
  return html`<div class="row">
    ${questionButton({ action: `${machinePath(machine.mac)}/do/flash`, label })}
    <span class="dim">or with another image or disk:</span>
  </div>`
}

export const renderReasonAndScript = (context: CurrentContext, view: MachineView): Html =>
  html`<p>
      ${view.boot.reason}
      <span class="dim"
        >(rule <code>${view.boot.rule}</code>, plan <code>${view.plan.plan.mode}</code>)</span
      >
    </p>
    ${copyBlock(renderScript(context, view), 'Boot script')}`

const canUndo = ({ site }: CurrentContext, { machine }: MachineView): boolean =>
  site.fleet.findUndoable(machine.mac) !== null

function renderState(context: CurrentContext, view: MachineView, lastRun: Run | null): Html {
  const flashed = view.view.state === 'done' ? renderFlashed(context, lastRun) : null
  if (flashed !== null)
    return html`${flashed}
      <p class="dim">${view.view.next}</p>
      ${renderBatchLink(context, view)}`
  const hasTrouble = view.view.state === 'needs-you' && view.machine.cycle.offers > 0
  return html`${renderSentence(view)} ${renderBatchLink(context, view)} ${renderEnd(context, view)}
  ${view.run === null ? null : html`<div class="wide-bar">${renderBar(view.run)}${renderExpected(view.run, context.clock())}</div>`}
  ${hasTrouble && lastRun !== null && isBad(lastRun) ? renderReason(lastRun.reason, lastRun) : null}`
}

/** Where it takes so long that somebody leaves meanwhile. */
function renderExpected({ eta_seconds: left, updated_at, stalled }: Run, clock: Clock): Content {
  if (left === null || left < 60 || stalled) return null
  const end = new Date(Date.parse(updated_at) + left * 1000).toISOString()
  return html`<p class="small dim">Done about ${renderMinute(end, clock, true)}.</p>`
}

const renderBatchLink = (
  { services }: CurrentContext,
  { machine: { cycle } }: MachineView,
): Content => {
  const batch = cycle.batch === null ? null : services.keeper.find(cycle.batch)
  return batch === null
    ? null
    : html`<p class="small">Batch: <a href="${batchPath(batch.id)}">${nameOfBatch(batch)}</a></p>`
}

/** `{time}`: when it was flashed. */
const DRIFT = {
  title: 'Drifted',
  unknown: 'an unknown image',
  'other-image':
    'The disk has {written}, flashed {time}. {assigned} is assigned. Flash the machine to change its disk.',
  'changed-image':
    'The disk has {written} as it was {time}. The image has changed since. Flash the machine to update its disk.',
  'other-disk':
    'The last flash, {time}, wrote {written} to {disk}. That is not the selected disk. The content of the selected disk is unknown.',
} as const

function renderDrift(context: CurrentContext, { drift, image, machine }: MachineView): Content {
  if (drift === null) return null
  const { image: name, at, model, serial } = drift.written
  const assigned = image?.name ?? machine.bty_image_ref?.slice(0, 12) ?? ''
  return html`<p>
    ${badge('needs-you', DRIFT.title)}
    ${fillHtml(DRIFT[drift.why], {
      written: html`<strong><bdi>${name ?? DRIFT.unknown}</bdi></strong>`,
      assigned: html`<strong><bdi>${assigned}</bdi></strong>`,
      disk: html`<strong>${printable([model, serial].filter(Boolean).join(', '))}</strong>`,
      time: renderTime(at, context.clock()),
    })}
  </p>`
}

function renderEnd(context: CurrentContext, { machine }: MachineView): Content {
  const { expires_at } = machine.cycle
  if (!canExpire(machine) || expires_at === null) return null
  return html`<p class="dim">
    Armed until ${renderMoment(new Date(expires_at), context.clock().zone)}.
  </p>`
}

function renderFlashed(context: CurrentContext, run: Run | null): Html | null {
  if (run?.result !== 'done' || run.image === null || run.disk === null) return null
  return html`<p class="sentence">
    ${fillHtml(
      run.verified === true
        ? 'Flashed {image} to {disk}, verified {time}.'
        : 'Flashed {image} to {disk}, not verified, {time}.',
      {
        image: html`<strong><bdi>${run.image.name}</bdi></strong>`,
        disk: html`<strong>${nameDisk(run.disk)}</strong>`,
        time: renderTime(run.ended_at, context.clock()),
      },
    )}
  </p>`
}

const isBad = ({ result }: Run) => result !== null && result !== 'done'

function renderFailure(view: MachineView, lastRun: Run | null): Html {
  const run = lastRun !== null && isBad(lastRun) ? lastRun : null
  const { reason } = view.machine.cycle.failure ?? { reason: null }
  return html`<p class="sentence">${renderFailed(view, run)}</p>
    ${renderReason(reason, run)}
    <p class="dim">${view.view.next}</p>`
}

function renderFailed({ image }: MachineView, run: Run | null): Content {
  const name = run?.image?.name ?? image?.name
  const disk = run?.disk ?? null
  if (name === undefined) return 'The flash failed.'
  const shown = html`<strong><bdi>${name}</bdi></strong>`
  return disk === null
    ? html`The flash of ${shown} failed.`
    : html`The flash of ${shown} to <strong>${nameDisk(disk)}</strong> failed.`
}

const renderReason = (reason: string | null, run: Run | null): Html =>
  banner(
    'failed',
    html`<strong>${reason === null ? 'The machine gave no reason.' : printable(reason)}</strong>
      ${run === null ? null : renderRunLink(run)}`,
  )

const renderRunLink = (run: Run): Html =>
  run.has_log
    ? html`<a href="${runPath(run)}#log">Show the log</a>`
    : html`<a href="${runPath(run)}">Show the run</a>`

function renderButtons(view: MachineView, here: string): Content {
  // A machine that is done has nothing to do: what flashes it again is in the fold below.
  const isDone = view.view.state === 'done'
  const actions = listActions(view).filter(({ action }) => !isDone || action !== 'flash')
  return actions.length === 0
    ? null
    : html`<div class="row">
        ${actions.map(({ action, isPrimary }) => BUTTONS[action](view, here, isPrimary))}
      </div>`
}

type Button = (view: MachineView, here: string, isPrimary: boolean) => Content

/** "Again" only after a flash. */
function labelFlash({ machine, view }: MachineView): string {
  if (view.state === 'failed') return 'Try again…'
  return machine.last_flashed_at === null ? 'Flash…' : 'Flash again…'
}

const toneOf = (isPrimary: boolean) => (isPrimary ? 'primary' : 'plain')

const BUTTONS: Readonly<Record<MachineButton, Button>> = {
  'show-run': ({ run }) =>
    run === null ? null : html`<a class="button" href="${runPath(run)}">Show this run</a>`,
  resume: ({ machine }, _, isPrimary) =>
    questionButton({
      action: `${batchPath(machine.cycle.batch ?? '')}/resume`,
      label: 'Resume the batch…',
      tone: toneOf(isPrimary),
    }),
  flash: (view, here, isPrimary) =>
    questionButton({
      action: `${here}/do/flash`,
      label: labelFlash(view),
      tone: toneOf(isPrimary),
    }),
  'cancel-capture': (_, here) =>
    postButton({ action: `${here}/do/cancel-capture`, label: 'Cancel the capture' }),
  'cancel-once': (_, here) =>
    postButton({ action: `${here}/do/cancel-once`, label: 'Cancel the other boot' }),
  disarm: (_, here) => postButton({ action: `${here}/do/disarm`, label: 'Disarm' }),
  'boot-disk': (_, here) =>
    questionButton({
      action: `${here}/do/boot-disk`,
      label: 'Boot its disk anyway…',
      tone: 'danger',
    }),
  refresh: (_, here) => postButton({ action: `${here}/do/refresh`, label: 'Refresh inventory' }),
  unlock: (_, here, isPrimary) =>
    postButton({
      action: `${here}/do/unlock`,
      label: 'Unlock',
      tone: toneOf(isPrimary),
    }),
}

/** Without its token, which is secret. */
function renderScript(context: CurrentContext, { machine, boot }: MachineView): string {
  const { decision, rule, reason } = boot
  const hasToken = context.services.config.current().pxe.tokens !== 'off'
  const shown =
    decision.kind === 'to-live' && hasToken ? { ...decision, token: 'hidden' } : decision
  return renderBoot(shown, { mac: machine.mac, mode: machine.boot_mode, rule, reason })
}

const DONE = [
  ['disk', 'Saved. Its next network boot starts its own disk.'],
  ['undone', 'Undone. The machine has its former settings. Undo never arms a machine.'],
  ['powered', 'Requested. The result appears here and among the events.'],
  ['bmc', 'Saved. Its state is being read.'],
  ['bmc-forgotten', 'The BMC was forgotten.'],
  ['unpinned', 'The certificate was forgotten. The next one from the BMC will be trusted.'],
  ['once', 'Ordered. The next network boot starts it, once.'],
  ['unonced', 'The other boot was cancelled.'],
  ['captured', 'The capture was ordered.'],
  ['uncaptured', 'The capture was cancelled.'],
] as const

/** Only what erases a disk is called armed. */
export function renderDone(query: URLSearchParams, view: MachineView): Content {
  const done = DONE.find(([name]) => query.has(name))
  if (done !== undefined) return banner('done', done[1])
  if (query.has('armed')) {
    if (!willFlash(view) && !isWaiting(view)) {
      return banner('needs-you', `Saved, but not armed: ${`${view.view.is} ${view.view.next}`}`)
    }
    return html`<div class="while-armed">
      ${banner('done', 'Armed. Boot the machine from the network now.')}
    </div>`
  }
  if (!query.has('saved')) return null
  const { boot_mode, bty_image_ref: ref, target_disk_serial: serial } = view.machine
  return ref === null || serial === null || isFlashMode(boot_mode)
    ? banner('done', 'Saved.')
    : banner(
        'done',
        fillHtml('Saved, not armed. On network boot: {mode}. Select {flash} to flash the image.', {
          mode: html`<strong>${MODES[boot_mode].title}</strong>`,
          flash: html`<strong>${MODES[USUAL_FLASH_MODE].title}</strong>`,
        }),
      )
}
