/** What leads on from a run: the button that writes its image to its disk once more, and the runs of the machine before it. */
import type { Run } from '#engine/inventory/rules/run.ts'
import { card } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { address, html, type Content } from '#kit/web/ui/html.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { opensQuestion, questionButton } from '#server/pages/question.ts'
import { PAGES } from '#server/texts/texts.ts'
import { isFlashMode, USUAL_FLASH_MODE } from '#server/current/rules/boot-mode.ts'
import type { Machine } from '#server/current/rules/machine.ts'
import { flashAgain } from '#server/current/rules/operator-edits.ts'
import { fingerprint, valuesOf } from '../machines/machine-form.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { isWaiting, willFlash } from '../view/machine-view.ts'
import { renderRunList } from '../view/run-table.ts'

const t = PAGES.runs.run

const MAX_BEFORE = 5

/** Asks as every flash does. Nothing if the machine cannot be armed, or image or disk is gone. */
export function renderAgain(context: CurrentContext, run: Run, machine: Machine | null): Content {
  if (machine === null || run.result === null) return null
  const armed = armAs(run, machine)
  if (armed === null || !canBeArmed(context, machine, armed)) return null
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

/** Null: the run names no image or disk. */
function armAs({ mode, image, disk }: Run, machine: Machine): Machine | null {
  const bty_image_ref = image?.ref ?? null
  const target_disk_serial = disk?.serial ?? null
  if (mode === 'capture' || bty_image_ref === null || target_disk_serial === null) return null
  const boot_mode = isFlashMode(machine.boot_mode) ? machine.boot_mode : USUAL_FLASH_MODE
  return { ...machine, boot_mode, bty_image_ref, target_disk_serial }
}

function canBeArmed(context: CurrentContext, machine: Machine, armed: Machine): boolean {
  const view = context.view(machine)
  const isTaken = view.run !== null || willFlash(view) || isWaiting(view)
  return (
    !isTaken &&
    context.services.images().some(({ ref }) => ref === armed.bty_image_ref) &&
    machine.known_disks?.some(({ serial }) => serial === armed.target_disk_serial) === true &&
    flashAgain(armed, context.site.now().toISOString()).ok
  )
}

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
