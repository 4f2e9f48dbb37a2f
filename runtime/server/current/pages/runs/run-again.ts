/** What leads on from a run: the button that writes its image to its disk once more, and the runs of the machine before it. */
import type { Run } from '../../../../engine/inventory/rules/run.ts'
import { card } from '../../../../kit/web/ui/elements.ts'
import { hidden } from '../../../../kit/web/ui/fields.ts'
import { address, html, type Content } from '../../../../kit/web/ui/html.ts'
import { machinePath } from '../../../pages/machines/machines-list.ts'
import { opensQuestion, questionButton } from '../../../pages/question.ts'
import { PAGES } from '../../../texts/texts.ts'
import { isFlashMode, USUAL_FLASH_MODE } from '../../rules/boot-mode.ts'
import type { Machine } from '../../rules/machine.ts'
import { flashAgain } from '../../rules/operator-edits.ts'
import { fingerprint, valuesOf } from '../machines/machine-form.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { isWaiting, willFlash } from '../view/machine-view.ts'
import { renderRunList } from '../view/run-table.ts'

const t = PAGES.runs.run

/** Runs before it that are listed. */
const MAX_BEFORE = 5

/**
 * Renders the button, which asks as every flash is asked for; nothing while the machine is armed already
 * or cannot be, or where the image or the disk of the run is no longer there.
 */
export function renderAgain(context: CurrentContext, run: Run, machine: Machine | null): Content {
  const ref = run.image?.ref
  const serial = run.disk?.serial
  if (machine === null || run.result === null || run.mode === 'capture' || !ref || !serial) {
    return null
  }
  const isThere =
    context.services.images().some((image) => image.ref === ref) &&
    machine.known_disks?.some((disk) => disk.serial === serial) === true
  const boot_mode = isFlashMode(machine.boot_mode) ? machine.boot_mode : USUAL_FLASH_MODE
  const armed = { ...machine, boot_mode, bty_image_ref: ref, target_disk_serial: serial }
  const view = context.view(machine)
  const isTaken = view.run !== null || willFlash(view) || isWaiting(view)
  if (!isThere || isTaken || !flashAgain(armed, context.site.now().toISOString()).ok) return null
  const label = run.result === 'done' ? PAGES.machine.now.flashAgain : PAGES.machine.now.tryAgain
  const path = machinePath(machine.mac)
  if (fingerprint(armed) === fingerprint(machine)) {
    return questionButton({ action: `${path}/do/flash`, label })
  }
  return html`<form class="inline" ${opensQuestion(path)}>
    ${hidden({ ...valuesOf(armed), was: fingerprint(machine), confirm: 'ask' })}
    <button>${label}</button>
  </form>`
}

/** Renders the runs of the machine before this one; nothing where it was the first. */
export function renderBefore({ site, clock }: CurrentContext, run: Run): Content {
  const until = run.started_at ?? run.updated_at
  const runs = site.runs.list({ mac: run.mac, until, limit: MAX_BEFORE }).map((each) => each.run)
  if (runs.length === 0) return null
  return card({
    title: t.before.title,
    id: 'before',
    aside: html`<a class="small" href="${address('/ui/runs', { mac: run.mac })}"
      >${t.before.all}</a
    >`,
    body: renderRunList(runs, clock()),
  })
}
