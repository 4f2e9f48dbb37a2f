/** The form that says what shall become of a machine: mode, image, disk, labels. */
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

import { aboutDisk, modelOf, warnOf } from '../view/disk-text.ts'
import { fingerprint, type FormValues } from './machine-form.ts'
import { isOtherArch } from './flash-question.ts'
import { machinePath } from '../view/machine-row.ts'
import { aboutImage } from '../view/next-boot.ts'

interface IntentDependencies {
  readonly machine: Machine
  readonly values: FormValues
  readonly images: readonly CatalogEntry[]
  /** Why the catalog may be old or empty; null: it is fine. */
  readonly catalogError: string | null
  /** Where the table is that led here. */
  readonly back: string
}

const MODES: Readonly<Record<BootMode, { readonly title: string; readonly text: string }>> = {
  'ipxe-exit': { title: 'Boot its disk', text: 'The server does nothing with it.' },
  'flasher-flash-once': {
    title: 'Flash once',
    text: 'Writes the image at the next network boot, then boots the disk for good.',
  },
  'flasher-flash-always': {
    title: 'Flash always',
    text: 'Writes the image at every network boot: a box that tries the network first is written each time, on purpose.',
  },
  'flasher-inventory': {
    title: 'List its disks',
    text: 'Looks what is in the machine, then boots the disk.',
  },
  'flasher-tui': {
    title: 'Open the wizard',
    text: 'A person at the machine picks image and disk.',
  },
}

/** In pairs: what leaves the disk alone, what writes it, and where a person does. */
const MODE_ORDER = [
  'flasher-flash-once',
  'flasher-flash-always',
  'ipxe-exit',
  'flasher-inventory',
  'flasher-tui',
] as const satisfies readonly BootMode[]

export function renderIntentForm({
  machine,
  values,
  images,
  catalogError,
  back,
}: IntentDependencies): Html {
  const picked = images.find(({ ref }) => ref === values.bty_image_ref) ?? null
  const path = machinePath(machine.mac)
  return html`<form
    method="post"
    action="${path}"
    hx-post="${path}"
    hx-target="#dialog"
    hx-select="#question"
    hx-swap="innerHTML"
  >
    ${hidden({ confirm: 'ask', was: fingerprint(machine), back })}
    ${radioCards({
      name: 'boot_mode',
      legend: 'At its network boots',
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
    ${renderDisks(machine, values.target_disk_serial, picked)}
    ${textField({
      name: 'labels',
      label: 'Labels',
      value: values.labels,
      hint: 'Names for people, with commas between them. At most 16.',
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
          most: 8,
          hint: 'Which drive a legacy BIOS starts. UEFI machines follow their own boot order.',
        })}
        ${selectField({
          name: 'serial_console',
          label: 'Serial console',
          value: values.serial_console,
          options: [
            { value: 'ttyS0', text: 'ttyS0, the first port' },
            { value: 'ttyS1', text: 'ttyS1, as some management controllers want' },
          ],
          hint: 'Where the live system speaks.',
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
          The catalog cannot be fetched: ${error} <a href="/ui/settings#ramboot">Cache service</a>
        </p>`
  }
`

function imageCards(
  machine: Machine,
  picked: string,
  images: readonly CatalogEntry[],
): readonly RadioCard[] {
  const isGone = picked !== '' && !images.some(({ ref }) => ref === picked)
  const gone: RadioCard = {
    value: picked,
    title: html`<code>${picked.slice(0, 12)}</code> (no longer there)`,
    text: 'The catalog does not have this image any more. It stays assigned until you pick another.',
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
    ${canFlash ? null : html`<span class="warning">Not a disk image: extract it first.</span>`}
    ${isOtherArch(machine.arch, arch) ? html`<span class="warning">This machine is ${machine.arch}.</span>` : null}`,
    keywords: `${name} ${format} ${arch ?? ''} ${image.sha256?.slice(0, 12) ?? ''}`,
    disabled: !canFlash && ref !== machine.bty_image_ref,
  }
}

function renderDisks(machine: Machine, picked: string, image: CatalogEntry | null): Html {
  const disks = machine.known_disks
  if (disks === null) {
    return textField({
      name: 'target_disk_serial',
      label: 'Target disk',
      value: picked,
      mono: true,
      most: 128,
      hint: 'The serial of the disk to write. The machine has not told its disks yet: they are listed at its first network boot.',
    })
  }
  const isThere = disks.some((disk) => identifyDisk(disk) === picked)
  const gone: RadioCard = {
    value: picked,
    title: html`<code>${printable(picked)}</code> (no longer there)`,
    text: 'The last inventory does not have this disk. It stays picked until you pick another.',
  }
  return radioCards({
    name: 'target_disk_serial',
    legend: 'Target disk',
    value: picked,
    cards: [
      { value: '', title: 'None' },
      ...(picked !== '' && !isThere ? [gone] : []),
      ...disks.map((disk) => diskCard(disk, disks, picked, image)),
    ],
  })
}

function diskCard(
  disk: InventoryDisk,
  all: readonly InventoryDisk[],
  picked: string,
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
    disabled: warnings.some(({ isHard }) => isHard) && id !== picked,
  }
}
