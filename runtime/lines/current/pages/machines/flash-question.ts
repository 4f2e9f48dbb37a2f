/** The question before a disk is written: this image, to that disk, and what would be lost. */
import { printable } from '../../../../core/foundation/printable.ts'
import type { Content, Html } from '../../../../web/ui/html.ts'
import { html } from '../../../../web/ui/html.ts'
import { hidden, textField } from '../../../../web/ui/fields.ts'
import { banner, icon } from '../../../../web/ui/elements.ts'
import { bytesOf, aboutDisk, modelOf, warnOf } from '../view/disk-text.ts'
import { lastFour } from './machine-form.ts'
import { nameOf, type MachineView } from '../view/machine-view.ts'
import { machinePath } from '../view/machine-row.ts'
import { aboutImage } from '../view/next-boot.ts'

interface Question {
  /** As it would be. */
  readonly view: MachineView
  readonly action: string
  /** What the form that led here held. */
  readonly values: Readonly<Record<string, string>>
  readonly error: string | null
}

export function renderQuestion({ view, action, values, error }: Question): Html {
  const { machine, image, disk } = view
  const serial = machine.target_disk_serial ?? ''
  const name = nameOf(machine)
  return html`<section class="card stack" id="question">
    <h2 id="dialog-title">Write this disk of ${name}?</h2>
    <div class="facing">
      <div>
        ${icon('image')} <strong>${image?.name ?? machine.bty_image_ref?.slice(0, 12)}</strong
        ><br />
        <span class="small dim"
          >${image === null ? 'not in the catalog now' : aboutImage(image)}</span
        >
      </div>
      <span aria-label="to">→</span>
      <div>
        ${icon('disk')}
        <strong>${disk === null ? 'A disk that is not listed yet' : modelOf(disk)}</strong><br />
        <code>${printable(serial)}</code><br />
        <span class="small dim">${disk === null ? 'size and model unknown' : aboutDisk(disk)}</span>
      </div>
    </div>
    ${listDiskMismatches(view).map((text) => banner('needs-you', text))}
    <p>
      <strong>Everything on that disk is lost</strong>, at the next network boot of this machine.
    </p>
    <form method="post" action="${action}">
      ${hidden(values)}
      ${textField({
        name: 'confirm',
        label: `Type the last ${lastFour(serial).length} characters of its serial`,
        mono: true,
        required: true,
        most: 8,
        error,
      })}
      <div class="row">
        <a class="button" href="${machinePath(machine.mac)}" data-close>Cancel</a>
        <button class="primary">Arm ${name}</button>
      </div>
    </form>
  </section>`
}

/** What does not forbid it, and yet may be a mistake. */
function listDiskMismatches({ machine, image, disk, boot }: MachineView): readonly Content[] {
  const doubts: Content[] = []
  if (boot.decision.kind !== 'to-live') doubts.push(boot.reason)
  if (isOtherArch(machine.arch, image?.arch ?? null)) {
    doubts.push(
      html`The image is for <strong>${image?.arch}</strong>, this machine is
        <strong>${machine.arch}</strong>: it will hardly start from it.`,
    )
  }
  if (disk !== null) {
    const warnings = warnOf(disk, machine.known_disks ?? [], image)
    doubts.push(...warnings.map(({ text }) => text))
    if (bytesOf(disk) === null) doubts.push('The size of the disk is not known.')
  }
  return doubts
}

/** iPXE says `x86_64`, `i386` and `arm64`; a 64-bit PC may be asked by a 32-bit loader. */
export const isOtherArch = (machine: string | null, image: string | null): boolean =>
  machine !== null && image !== null && (machine === 'i386' ? 'x86_64' : machine) !== image
