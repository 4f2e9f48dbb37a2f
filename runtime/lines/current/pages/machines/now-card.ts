/** The first card of a machine's page: its state, why it failed, what happens next, and what can be done. */
import { renderBoot } from '../../../../core/boot/boot-script.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import type { Run } from '../../../../core/machine/run.ts'
import { badge, banner, copyBlock } from '../../../../web/ui/elements.ts'
import { postButton } from '../../../../web/ui/fields.ts'
import { attributes, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { refreshOnNews } from '../../../../web/ui/refresh.ts'
import { isFlashMode } from '../../rules/machine.ts'
import type { PageContext } from '../frame/page-context.ts'
import { questionButton } from '../frame/question.ts'
import { isWaiting, willFlash, type MachineView } from '../view/machine-view.ts'
import { renderSentence } from '../view/next-boot.ts'
import { nameDisk, renderBar } from '../view/run-bar.ts'
import { runPath } from '../view/run-table.ts'
import { listActions, type MachineAction } from './machine-actions.ts'
import { MODES } from './mode-cards.ts'

/** What the machine reports elsewhere on the page; what is being edited stays (`configuration.js`). */
const ALSO = '#facts:morph,#configuration:morph'

export const renderNow = (
  context: PageContext,
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
    ${refreshOnNews('now', here, 1000)}
  >
    ${badge(view.view.state)}
    ${view.view.state === 'failed' ? renderFailure(view, lastRun) : renderState(view, lastRun)}
    ${renderButtons(view, here)}
    <details id="reason">
      <summary>Reason and boot script</summary>
      <div class="stack">
        <p>
          ${view.boot.reason}
          <span class="dim"
            >(rule <code>${view.boot.rule}</code>, plan <code>${view.plan.plan.mode}</code>)</span
          >
        </p>
        ${copyBlock(renderScript(context, view), 'Boot script')}
      </div>
    </details>
  </section>`

function renderState(view: MachineView, lastRun: Run | null): Html {
  const hasTrouble = view.view.state === 'needs-you' && view.machine.cycle.offers > 0
  return html`${renderSentence(view)}
  ${view.run === null ? null : html`<div class="wide-bar">${renderBar(view.run)}</div>`}
  ${hasTrouble && lastRun !== null && isBad(lastRun) ? renderReason(lastRun.reason, lastRun) : null}`
}

const isBad = ({ result }: Run) => result !== null && result !== 'done'

/** What failed and why, then what happens next. */
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
  const actions = listActions(view)
  return actions.length === 0
    ? null
    : html`<div class="row">
        ${actions.map(({ action, isPrimary }) => BUTTONS[action](view, here, isPrimary))}
      </div>`
}

type Button = (view: MachineView, here: string, isPrimary: boolean) => Content

const toneOf = (isPrimary: boolean) => (isPrimary ? 'primary' : 'plain')

const BUTTONS: Readonly<Record<MachineAction, Button>> = {
  'show-run': ({ run }) =>
    run === null ? null : html`<a class="button" href="${runPath(run)}">Show this run</a>`,
  flash: (_, here, isPrimary) =>
    questionButton({ action: `${here}/do/flash`, label: 'Flash again…', tone: toneOf(isPrimary) }),
  disarm: (_, here) => postButton({ action: `${here}/do/disarm`, label: 'Disarm' }),
  'boot-disk': (_, here) =>
    questionButton({
      action: `${here}/do/boot-disk`,
      label: 'Boot its disk anyway…',
      tone: 'danger',
    }),
  refresh: (_, here) => postButton({ action: `${here}/do/refresh`, label: 'Refresh inventory' }),
  unlock: (_, here, isPrimary) =>
    postButton({ action: `${here}/do/unlock`, label: 'Unlock', tone: toneOf(isPrimary) }),
}

/** As the machine would get it now, without its token, which is secret. */
function renderScript(context: PageContext, { machine, boot }: MachineView): string {
  const { decision, rule, reason } = boot
  const hasToken = context.services.config.current().pxe.tokens !== 'off'
  const shown =
    decision.kind === 'to-live' && hasToken ? { ...decision, token: 'hidden' } : decision
  return renderBoot(shown, { mac: machine.mac, mode: machine.boot_mode, rule, reason })
}

/** What the form or the button that led here did. Only what erases a disk is called armed. */
export function renderDone(query: URLSearchParams, view: MachineView): Content {
  if (query.has('disk')) return banner('done', DISK_TEXT)
  if (query.has('armed')) {
    if (!willFlash(view) && !isWaiting(view)) {
      return banner('needs-you', html`Saved, but not armed: ${view.view.is} ${view.view.next}`)
    }
    return html`<div class="while-armed">${banner('done', ARMED_TEXT)}</div>`
  }
  if (!query.has('saved')) return null
  const { boot_mode, bty_image_ref: ref, target_disk_serial: serial } = view.machine
  return ref === null || serial === null || isFlashMode(boot_mode)
    ? banner('done', 'Saved.')
    : banner(
        'done',
        html`Saved, not armed: on network boot, its mode is
          <strong>${MODES[boot_mode].title}</strong>. Select
          <strong>${MODES['flasher-flash-once'].title}</strong> to flash the image.`,
      )
}

const ARMED_TEXT = 'Armed. Boot the machine from the network now.'
const DISK_TEXT = 'Saved. Its next network boot starts its own disk.'
