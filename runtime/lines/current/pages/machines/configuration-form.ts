/** The configuration form of a machine: mode, image, disk, labels. */
import { isFlashable, type CatalogEntry } from '../../../../core/catalog/catalog.ts'
import { identifyDisk, type InventoryDisk } from '../../../../core/machine/machine.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
import {
  hidden,
  radioCards,
  selectField,
  textField,
  type RadioCard,
} from '../../../../web/ui/fields.ts'
import type { BootMode, Machine } from '../../rules/machine.ts'
import { MAX_NAME_CHARACTERS } from '../../rules/label.ts'
import { aboutDisk, modelOf, warnOf } from '../view/disk-text.ts'
import { fingerprint, type FormValues } from './machine-form.ts'
import { isOtherArch } from './flash-question.ts'
import { machinePath } from '../view/machine-row.ts'
import { opensQuestion } from '../frame/question.ts'
import { aboutImage } from '../view/next-boot.ts'

interface ConfigurationForm {
  readonly machine: Machine
  readonly values: FormValues
  readonly images: readonly CatalogEntry[]
  /** Why the catalog may be out of date or empty; null: it was read. */
  readonly catalogError: string | null
  /** The address of the table that led here. */
  readonly back: string
}

export const MODES: Readonly<Record<BootMode, { readonly title: string; readonly text: string }>> =
  {
    'ipxe-exit': { title: 'Boot its disk', text: 'The server leaves it alone.' },
    'flasher-flash-once': {
      title: 'Flash once',
      text: 'Flashes the image at the next network boot, then always boots the disk.',
    },
    'flasher-flash-always': {
      title: 'Flash always',
      text: 'Flashes the image at every network boot. A machine that tries the network first is flashed each time it starts.',
    },
    'flasher-inventory': {
      title: 'List its disks',
      text: 'Lists disks and hardware, then boots the disk.',
    },
    'flasher-tui': {
      title: 'Open the wizard',
      text: 'A person at the machine chooses image and disk.',
    },
  }

/** Modes that flash, modes that leave the disk alone, and the wizard. */
export const MODE_ORDER = [
  'flasher-flash-once',
  'flasher-flash-always',
  'ipxe-exit',
  'flasher-inventory',
  'flasher-tui',
] as const satisfies readonly BootMode[]

export function renderConfigurationForm({
  machine,
  values,
  images,
  catalogError,
  back,
}: ConfigurationForm): Html {
  const selected = images.find(({ ref }) => ref === values.bty_image_ref) ?? null
  const path = machinePath(machine.mac)
  return html`<form ${opensQuestion(path)}>
    ${hidden({ confirm: 'ask', was: fingerprint(machine), back })}
    ${radioCards({
      name: 'boot_mode',
      legend: 'On network boot',
      value: values.boot_mode,
      className: 'modes',
      cards: MODE_ORDER.map((mode) => ({ value: mode, ...MODES[mode] })),
    })}
    ${radioCards({
      name: 'bty_image_ref',
      legend: 'Image',
      value: values.bty_image_ref,
      className: 'images',
      before: imageTools(images.length, catalogError),
      cards: imageCards(machine, values.bty_image_ref, images),
    })}
    ${renderDisks(machine, values.target_disk_serial, selected)}
    ${textField({
      name: 'name',
      label: 'Name',
      value: values.name,
      placeholder: machine.hostname ?? machine.mac,
      maxLength: 2 * MAX_NAME_CHARACTERS,
      hint: 'Shown in place of the host name or MAC address; at most 64 characters.',
    })}
    ${textField({
      name: 'labels',
      label: 'Labels',
      value: values.labels,
      hint: 'Names for people, separated by commas; at most 16.',
    })}
    <details>
      <summary>Boot drive and serial console</summary>
      <div class="stack">
        ${textField({
          name: 'sanboot_drive',
          label: 'BIOS drive of its disk',
          value: values.sanboot_drive,
          placeholder: '0x80',
          mono: true,
          maxLength: 8,
          hint: 'The drive that a legacy BIOS boots. UEFI machines follow their own boot order.',
        })}
        ${selectField({
          name: 'serial_console',
          label: 'Serial console',
          value: values.serial_console,
          options: [
            { value: 'ttyS0', text: 'ttyS0, the first port' },
            { value: 'ttyS1', text: 'ttyS1, for some management controllers' },
          ],
          hint: 'The port for the console of the live system.',
        })}
      </div>
    </details>
    <button class="primary">Save</button>
  </form>`
}

const imageTools = (count: number, error: string | null): Content => html`
  ${
    count > 8
      ? html`<input
          type="search"
          class="scripted-only"
          data-filter=".images"
          aria-label="Find an image"
          placeholder="Find an image"
        />`
      : null
  }
  ${
    error === null
      ? null
      : html`<p class="hint warning">
          The catalog is unavailable: ${error} <a href="/ui/settings#ramboot">Cache service</a>
        </p>`
  }
`

function imageCards(
  machine: Machine,
  selected: string,
  images: readonly CatalogEntry[],
): readonly RadioCard[] {
  const isGone = selected !== '' && !images.some(({ ref }) => ref === selected)
  const gone: RadioCard = {
    value: selected,
    title: html`<code>${selected.slice(0, 12)}</code> (gone)`,
    text: 'No longer in the catalog. It stays assigned until you select another image.',
  }
  return [
    { value: '', title: 'None', keywords: 'none' },
    ...(isGone ? [gone] : []),
    ...images.map((image) => imageCard(machine, image)),
  ]
}

function imageCard(machine: Machine, image: CatalogEntry): RadioCard {
  const { ref, name, format, arch } = image
  const canFlash = isFlashable(image)
  return {
    value: ref,
    title: name,
    text: html`${format || 'unknown format'},
    ${aboutImage(image)}${arch === null ? null : html`, ${arch}`}
    ${canFlash ? null : html`<span class="warning">Not a disk image: unpack it first.</span>`}
    ${isOtherArch(machine.arch, arch) ? html`<span class="warning">This machine is ${machine.arch}.</span>` : null}`,
    keywords: `${name} ${format} ${arch ?? ''} ${image.sha256?.slice(0, 12) ?? ''}`,
    disabled: !canFlash && ref !== machine.bty_image_ref,
  }
}

function renderDisks(machine: Machine, selected: string, image: CatalogEntry | null): Html {
  const disks = machine.known_disks
  if (disks === null) {
    return textField({
      name: 'target_disk_serial',
      label: 'Target disk',
      value: selected,
      mono: true,
      maxLength: 128,
      hint: 'The serial number of the disk to flash. The machine lists its disks at its first live boot.',
    })
  }
  const isThere = disks.some((disk) => identifyDisk(disk) === selected)
  const gone: RadioCard = {
    value: selected,
    title: html`<code>${printable(selected)}</code> (gone)`,
    text: 'Not in the last inventory. It stays selected until you select another disk.',
  }
  return radioCards({
    name: 'target_disk_serial',
    legend: 'Target disk',
    value: selected,
    cards: [
      { value: '', title: 'None' },
      ...(selected !== '' && !isThere ? [gone] : []),
      ...disks.map((disk) => diskCard(disk, disks, selected, image)),
    ],
  })
}

function diskCard(
  disk: InventoryDisk,
  all: readonly InventoryDisk[],
  selected: string,
  image: CatalogEntry | null,
): RadioCard {
  const id = identifyDisk(disk)
  const warnings = warnOf(disk, all, image)
  return {
    value: id ?? '-',
    title: modelOf(disk),
    text: html`<code>${printable(id ?? 'no serial')}</code>, ${aboutDisk(disk)},
      ${printable(disk.path)}
      ${warnings.map(({ text }) => html`<span class="warning">${text}</span>`)}`,
    disabled: warnings.some(({ isHard }) => isHard) && id !== selected,
  }
}
