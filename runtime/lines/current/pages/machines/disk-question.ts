/** The question before a machine boots a disk that may be only partly written. */
import { printable } from '../../../../core/foundation/printable.ts'
import { banner } from '../../../../web/ui/elements.ts'
import { hidden } from '../../../../web/ui/fields.ts'
import { html, type Html } from '../../../../web/ui/html.ts'
import { renderTime, type Clock } from '../../../../web/ui/times.ts'
import { renderQuestion } from '../frame/question.ts'
import { nameOf, type MachineView } from '../view/machine-view.ts'
import { machinePath } from '../view/machine-row.ts'

interface DiskQuestion {
  readonly view: MachineView
  readonly action: string
  /** The fields of the form that led here. */
  readonly values: Readonly<Record<string, string>>
  readonly error: string | null
  /** Whether anybody on the network can fetch a plan. */
  readonly isOpen: boolean
}

export function renderDiskQuestion(
  { view, action, values, error, isOpen }: DiskQuestion,
  clock: Clock,
): Html {
  const { planned_at: plannedAt, target_disk_serial: serial, mac } = view.machine
  return renderQuestion({
    title: html`Boot the disk of <bdi>${nameOf(view.machine)}</bdi> anyway?`,
    body: html`${error === null ? null : banner('failed', error)}
      <p>${view.boot.reason}</p>
      ${
        plannedAt === null
          ? null
          : html`<p>
              It last received a plan
              ${renderTime(plannedAt, clock)}${
                serial === null ? null : html`, for the disk <code>${printable(serial)}</code>`
              }.${isOpen ? ' Boot tokens are off, so anybody on the network can request one.' : ''}
            </p>`
      }
      ${banner(
        'needs-you',
        'If a flash was interrupted, the disk holds part of an image: the machine may fail to boot, or boot with corrupt data.',
      )}
      <p>
        From the next network boot on the machine boots this disk. It is not flashed until somebody
        arms it again.
      </p>`,
    form: {
      action,
      fields: hidden({ ...values, confirm: 'yes' }),
      cancel: machinePath(mac),
      button: html`<button class="danger">Boot its disk anyway</button>`,
    },
  })
}
