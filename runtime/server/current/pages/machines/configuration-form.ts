/** The form of a machine in three steps (image, disk, what it does on network boot), then its names. */
import { USUAL_FLASH_MODE } from '#server/current/rules/boot-mode.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { ImageChannel } from '#fleet/channel/rules/channel.ts'
import { parseImageChoice } from '#server/current/channels/rules/image-choice.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { factList } from '#kit/web/ui/elements.ts'
import { printable } from '#kit/foundation/printable.ts'
import { hidden, selectField, textField } from '#kit/web/ui/fields.ts'
import { attributes, html, type Html } from '#kit/web/ui/html.ts'
import { MAX_LABELS, MAX_NAME_CHARACTERS } from '#server/current/rules/label.ts'
import type { Machine } from '#server/current/rules/machine.ts'
import { opensQuestion } from '#server/pages/question.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { renderDisks } from './disk-cards.ts'
import { renderImages } from './image-cards.ts'
import { modelOf } from '../view/disk-text.ts'
import { nameOf, renderChannel, type MachineView } from '../view/machine-view.ts'
import { fingerprint, type FormValues } from './machine-form.ts'
import { MODE_TEXTS, renderModes } from './mode-cards.ts'

const t = PAGES.machine.form

interface ConfigurationForm {
  readonly machine: Machine
  readonly values: FormValues
  /** Flashed as its mode says: it boots its disk now. */
  readonly isFlashed: boolean
  readonly images: readonly CatalogEntry[]
  readonly channels: readonly ImageChannel[]
  /** Why the catalog may be out of date; null: it was read. */
  readonly catalogError: string | null
  readonly back: string
  /** Typed and refused values: updates of the machine must not replace them. */
  readonly isTyped: boolean
  readonly refused: { readonly field: string; readonly error: string } | null
}

export function renderConfigurationForm(form: ConfigurationForm): Html {
  const { machine, values, images, channels, catalogError, back } = form
  const chosen = parseImageChoice(values.bty_image_ref).ref
  const selected = images.find(({ ref }) => ref === chosen) ?? null
  return html`<form
    id="configuration"
    ${attributes({
      'data-dirty': form.isTyped,
      'data-mode-selected': fill(t.modeSelected, { mode: MODE_TEXTS[USUAL_FLASH_MODE].title }),
    })}
    ${opensQuestion(machinePath(machine.mac))}
  >
    ${hidden({ confirm: 'ask', was: fingerprint(machine), back })}
    <div class="choices">
      ${renderImages({ machine, selected: values.bty_image_ref, images, channels, catalogError })}
      ${renderDisks(machine, values.target_disk_serial, selected)}
      ${renderModes(values.boot_mode, machine.boot_mode, form.isFlashed)}
    </div>
    ${renderNames(form)} ${renderBootOptions(form)}
    <div class="save-bar">
      <button class="primary">
        <span class="if-saves">${t.save}</span><span class="if-arms">${t.arm}</span>
      </button>
      <span class="whose"><bdi>${nameOf(machine)}</bdi></span>
    </div>
  </form>`
}

/** Read-only. */
export function renderAssignment({ machine, image, disk }: MachineView): Html {
  const { bty_image_ref: ref, target_disk_serial: serial } = machine
  const imageName = image?.name ?? ref?.slice(0, 12) ?? PAGES.machine.images.none
  const diskName = disk === null ? null : html`<bdi>${modelOf(disk)}</bdi> `
  return factList([
    [t.image, html`<bdi>${imageName}</bdi>${renderChannel(machine)}`],
    [
      t.disk,
      serial === null
        ? PAGES.machine.disks.none
        : html`${diskName}<code>${printable(serial)}</code>`,
    ],
    [t.mode, MODE_TEXTS[machine.boot_mode].title],
    [PAGES.firstBoot.template, machine.first_boot],
    [t.grow, machine.grow ? t.growths.yes : null],
  ])
}

const errorOf = ({ refused }: ConfigurationForm, field: keyof FormValues): string | null =>
  refused?.field === field ? refused.error : null

const renderNames = (form: ConfigurationForm): Html =>
  html`<div class="names">
    ${textField({
      name: 'name',
      label: t.name,
      value: form.values.name,
      placeholder: form.machine.hostname ?? form.machine.mac,
      maxLength: 2 * MAX_NAME_CHARACTERS,
      hint: t.nameHint,
      error: errorOf(form, 'name'),
    })}
    ${textField({
      name: 'labels',
      label: t.labels,
      value: form.values.labels,
      placeholder: t.labelsPlaceholder,
      hint: fill(t.labelsHint, { count: MAX_LABELS }),
      error: errorOf(form, 'labels'),
    })}
  </div>`

const renderBootOptions = (form: ConfigurationForm): Html =>
  html`<details ${attributes({ open: errorOf(form, 'sanboot_drive') !== null })}>
    <summary>${t.bootOptions}</summary>
    <div class="names">
      ${textField({
        name: 'sanboot_drive',
        label: t.drive,
        value: form.values.sanboot_drive,
        placeholder: '0x80',
        mono: true,
        maxLength: 8,
        hint: t.driveHint,
        error: errorOf(form, 'sanboot_drive'),
      })}
      ${renderChoice(form, 'serial_console', {
        label: t.console,
        options: { ttyS0: t.consoles.ttyS0, ttyS1: t.consoles.ttyS1 },
        hint: t.consoleHint,
      })}
      ${renderChoice(form, 'grow', {
        label: t.grow,
        options: { false: t.growths.no, true: t.growths.yes },
        hint: t.growHint,
      })}
    </div>
  </details>`

interface ChoiceTexts {
  readonly label: string
  readonly options: Readonly<Record<string, string>>
  readonly hint: string
}

const renderChoice = (
  form: ConfigurationForm,
  name: 'serial_console' | 'grow',
  { label, options, hint }: ChoiceTexts,
): Html =>
  selectField({
    name,
    label,
    value: form.values[name],
    options: Object.entries(options).map(([value, text]) => ({ value, text })),
    hint,
  })
