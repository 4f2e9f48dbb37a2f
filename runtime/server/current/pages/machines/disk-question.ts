/** The question before a machine boots a disk that may be only partly written. */
import { isFlashMode } from '#server/current/rules/boot-mode.ts'
import { printable } from '#kit/foundation/printable.ts'
import { PAGES } from '#server/texts/texts.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Html } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import type { FlashQuestion } from './flash-question.ts'
import { renderQuestion } from '#server/pages/question.ts'

import { nameOf } from '../view/machine-view.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'

const t = PAGES.machine.diskQuestion

interface DiskQuestion extends FlashQuestion {
  /** Whether anybody on the network can fetch a plan. */
  readonly isOpen: boolean
}

export function renderDiskQuestion(
  { view, action, values, error, isOpen, command }: DiskQuestion,
  clock: Clock,
): Html {
  const { planned_at: plannedAt, target_disk_serial: serial, mac, boot_mode } = view.machine
  return renderQuestion({
    title: fillHtml(t.title, { name: html`<bdi>${nameOf(view.machine)}</bdi>` }),
    body: html`${error === null ? null : banner('failed', error)}
      <p>${view.boot.reason}</p>
      ${
        plannedAt === null
          ? null
          : html`<p>
              ${renderPlanned(renderTime(plannedAt, clock), serial)} ${isOpen ? t.open : null}
            </p>`
      }
      ${banner('needs-you', t.warning)}
      <p>${isFlashMode(boot_mode) ? t.afterwards : t.afterwardsMode}</p>`,
    command,
    form: {
      action,
      fields: hidden({ ...values, confirm: 'yes' }),
      cancel: machinePath(mac),
      button: html`<button class="danger">${t.button}</button>`,
    },
  })
}

const renderPlanned = (time: Html, serial: string | null): Html =>
  serial === null
    ? fillHtml(t.planned, { time })
    : fillHtml(t.plannedFor, { time, serial: html`<code>${printable(serial)}</code>` })
