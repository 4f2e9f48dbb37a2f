/** The question before a disk is erased and flashed: which image, which disk, and what is unusual. */
import { printable } from '#kit/foundation/printable.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fillCount } from '#kit/texts/text.ts'
import { fillHtml, html, STRONG, type Content, type Html } from '#kit/web/ui/html.ts'
import { hidden, textField } from '#kit/web/ui/fields.ts'
import { banner, icon } from '#kit/web/ui/elements.ts'
import { renderQuestion } from '#server/pages/question.ts'
import { bytesOf, aboutDisk, modelOf, warnOf } from '../view/disk-text.ts'
import { lastFour } from './machine-form.ts'
import { nameOf, renderChannel, type MachineView } from '../view/machine-view.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { aboutImage } from '../view/next-boot.ts'

const t = PAGES.machine.flashQuestion

export interface FlashQuestion {
  /** Before a flash: the machine as it would be. */
  readonly view: MachineView
  readonly action: string
  readonly values: Readonly<Record<string, string>>
  readonly typed?: string
  readonly error: string | null
  readonly more?: Content
  readonly command?: Content
}

export function renderFlashQuestion({
  view,
  action,
  values,
  typed = '',
  error,
  more,
  command,
}: FlashQuestion): Html {
  const { machine, image, disk } = view
  const serial = machine.target_disk_serial ?? ''
  const name = nameOf(machine)
  return renderQuestion({
    title: fillHtml(t.title, { name: html`<bdi>${name}</bdi>` }),
    body: html`<div class="facing">
        <div>
          ${icon('image')}
          <strong><bdi>${image?.name ?? machine.bty_image_ref?.slice(0, 12)}</bdi></strong
          >${renderChannel(machine)}<br />
          <span class="small dim">${image === null ? t.goneImage : aboutImage(image)}</span>
        </div>
        <span aria-label="${t.to}">→</span>
        <div>
          ${icon('disk')}
          <strong><bdi>${disk === null ? t.unlistedDisk : modelOf(disk)}</bdi></strong
          ><br />
          ${renderSerial(serial)}<br />
          <span class="small dim">${disk === null ? t.unlistedDiskAbout : aboutDisk(disk)}</span>
        </div>
      </div>
      ${listWarnings(view).map((text) => banner('needs-you', text))}
      <p>${fillHtml(t.lost, STRONG)}</p>`,
    command,
    form: {
      action,
      fields: html`${hidden(values)}
      ${textField({
        name: 'confirm',
        label: fillCount(t.type, lastFour(serial).length),
        value: typed,
        mono: true,
        required: true,
        maxLength: 8,
        error,
      })}
      ${more}`,
      cancel: machinePath(machine.mac),
      button: html`<button class="danger">${t.button}</button>`,
    },
  })
}

/** In full, with the characters to type marked. */
function renderSerial(serial: string): Html {
  const typed = lastFour(serial)
  const end = serial.trimEnd().length
  return html`<code
    >${printable(serial.slice(0, end - typed.length))}<mark>${printable(typed)}</mark></code
  >`
}

/** Possible mistakes that do not prevent the flash. */
function listWarnings({ machine, image, disk, boot }: MachineView): readonly Content[] {
  const warnings: Content[] = []
  if (boot.decision.kind !== 'to-live') warnings.push(boot.reason)
  if (isOtherArch(machine.arch, image?.arch ?? null)) {
    warnings.push(
      fillHtml(t.otherArch, {
        imageArch: html`<strong>${image?.arch}</strong>`,
        machineArch: html`<strong>${machine.arch}</strong>`,
      }),
    )
  }
  if (disk !== null) {
    warnings.push(...warnOf(disk, machine.known_disks ?? [], image).map(({ text }) => text))
    if (bytesOf(disk) === null) warnings.push(t.unknownSize)
  }
  return warnings
}

/** iPXE says `x86_64`, `i386` and `arm64`; 32-bit loaders run on 64-bit PCs, too. */
export const isOtherArch = (machine: string | null, image: string | null): boolean =>
  machine !== null && image !== null && (machine === 'i386' ? 'x86_64' : machine) !== image
