/** The question before a machine boots a disk that may be half written. */
import { printable } from '../../../../core/foundation/printable.ts'
import { banner } from '../../../../web/ui/elements.ts'
import { hidden } from '../../../../web/ui/fields.ts'
import { html, type Html } from '../../../../web/ui/html.ts'
import { renderTime, type Clock } from '../../../../web/ui/times.ts'
import { nameOf, type MachineView } from '../view/machine-view.ts'
import { machinePath } from '../view/machine-row.ts'

interface DiskQuestion {
  readonly view: MachineView
  readonly action: string
  /** What the form that led here held. */
  readonly values: Readonly<Record<string, string>>
  readonly error: string | null
  /** Whether a plan is given to anybody who asks. */
  readonly isOpen: boolean
}

export function renderDiskQuestion(
  { view, action, values, error, isOpen }: DiskQuestion,
  clock: Clock,
): Html {
  const { machine, boot } = view
  const name = nameOf(machine)
  const { planned_at: plannedAt, target_disk_serial: serial } = machine
  return html`<section class="card stack" id="question">
    <h2 id="dialog-title">Boot the disk of ${name} anyway?</h2>
    ${error === null ? null : banner('failed', error)}
    <p>${boot.reason}</p>
    ${
      plannedAt === null
        ? null
        : html`<p>
            It was last given a plan
            ${renderTime(plannedAt, clock)}${
              serial === null ? null : html`, for the disk <code>${printable(serial)}</code>`
            }.${isOpen ? ' Anybody on the network can ask for one, because boot tokens are off.' : ''}
          </p>`
    }
    ${banner(
      'needs-you',
      'If a flash was cut off, the disk holds part of an image: the machine may fail to start, or start with damaged data.',
    )}
    <p>
      From its next network boot on it starts this disk, and it is not flashed until somebody arms
      it again.
    </p>
    <form method="post" action="${action}">
      ${hidden({ ...values, confirm: 'yes' })}
      <div class="row">
        <a class="button" href="${machinePath(machine.mac)}" data-close>Cancel</a>
        <button class="danger">Boot its disk anyway</button>
      </div>
    </form>
  </section>`
}
