/** The form of a machine: parses its fields, redisplays them after a refusal, and builds the request body. */
import { upperFirst } from '#kit/foundation/text.ts'
import {
  DEFAULT_MODE,
  BOOT_MODES,
  type BootMode,
  MODES,
  USUAL_FLASH_MODE,
} from './rules/boot-mode.ts'
import { renderFieldErrors, type FieldError } from '#kit/foundation/field-error.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { hidden, mapNames, radioCards, type RadioCard } from '#kit/web/ui/fields.ts'
import {
  parseImageChoice,
  renderImageChoice,
} from '#server/current/channels/rules/channel-order.ts'
import { channelOf, namesWith, splitLabels, type Machine } from './rules/machine.ts'
import { lacksTarget, parseUpsert, type UpsertRequest } from './rules/upsert.ts'
import { html, type Html } from '#kit/web/ui/html.ts'

const OPTIONS = namesWith('form')

/** As the deployed server names them; `name` and the options are ours. */
export const FIELDS = [
  'name',
  'bty_image_ref',
  'labels',
  'boot_mode',
  'sanboot_drive',
  'target_disk_serial',
  ...OPTIONS,
] as const
export type FormValues = Readonly<Record<(typeof FIELDS)[number], string>>

const MAX_LENGTH = 2000

/** With the typed values: the refused field. */
export const WRONG_FIELD = 'refused-field'

export const valuesOf = (machine: Machine): FormValues => ({
  name: machine.name ?? '',
  bty_image_ref: choiceOf(machine),
  labels: machine.labels.join(', '),
  boot_mode: machine.boot_mode,
  sanboot_drive: machine.sanboot_drive ?? '',
  target_disk_serial: machine.target_disk_serial ?? '',
  ...mapNames(OPTIONS, (name) => String(machine[name])),
})

export const choiceOf = (machine: Machine): string =>
  renderImageChoice({ channel: channelOf(machine), ref: machine.bty_image_ref ?? '' })

/** What was typed or is kept, else what is stored. */
export const readValues = (given: URLSearchParams, stored: FormValues): FormValues =>
  mapNames(
    FIELDS,
    (name) => (given.get(name) ?? given.get(`kept_${name}`))?.slice(0, MAX_LENGTH) ?? stored[name],
  )

/** An absent field has its default, as in a PUT; an absent name stays. */
export const EMPTY: FormValues = { ...mapNames(FIELDS, () => ''), boot_mode: DEFAULT_MODE }

export interface FormRefusal {
  /** For scripts: begins as on the deployed server. */
  readonly error: string
  readonly text: string
  /** The field that shows it; null: none. */
  readonly field: keyof FormValues | null
}

export function parseForm(
  values: FormValues,
  { hasName }: { readonly hasName: boolean },
): Result<UpsertRequest, FormRefusal> {
  const labels = splitLabels(values.labels)
  const { channel, ref } = parseImageChoice(values.bty_image_ref)
  const parsed = parseUpsert({
    channel,
    ...(hasName ? { name: values.name } : {}),
    bty_image_ref: ref || null,
    labels,
    boot_mode: values.boot_mode,
    sanboot_drive: values.sanboot_drive.trim() || null,
    target_disk_serial: values.target_disk_serial.trim() || null,
  })
  if (!parsed.ok) return refuse(describeRefusal(parsed.refusal, labels))
  if (!lacksTarget(parsed.value)) return parsed
  const error = `boot_mode=${parsed.value.boot_mode} requires a target disk; select the disk to flash.`
  return refuse({ error, text: 'Select the disk to flash.', field: 'target_disk_serial' })
}

export function describeRefusal(
  errors: readonly FieldError[],
  labels: readonly string[],
): FormRefusal {
  const [first] = errors
  const [, name, at] = first?.loc ?? []
  const label = typeof at === 'number' ? labels[at] : undefined
  const reason = first?.msg ?? 'It cannot be saved'
  return {
    error: `validation failed: ${renderFieldErrors(errors)}`,
    text:
      label === undefined
        ? `${upperFirst(reason).replace(/\.$/, '')}.`
        : `The label "${printable(label)}": ${reason}.`,
    field: name === 'channel' ? 'bty_image_ref' : (FIELDS.find((field) => field === name) ?? null),
  }
}

/** A form does not overwrite a change made meanwhile. */
export const fingerprint = (machine: Machine): string =>
  JSON.stringify([
    machine.boot_mode,
    machine.bty_image_ref,
    machine.target_disk_serial,
    machine.name,
    machine.labels,
    machine.sanboot_drive,
  ])

/** `was`: the fingerprint in the form; null: no condition. */
export const isExpected =
  (was: string | null) =>
  (before: Machine | null): boolean =>
    was === null || (before !== null && fingerprint(before) === was)

/** Typing the last four characters proves that the serial was read. */
export const lastFour = (serial: string): string => serial.trim().slice(-4)

export const isTyped = (typed: string, serial: string): Result<true, string> =>
  typed.trim().toLowerCase() === lastFour(serial).toLowerCase()
    ? accept(true)
    : refuse(`These are not the last characters of ${printable(serial)}.`)

const inOrder = BOOT_MODES.toSorted((one, other) => MODES[one].card - MODES[other].card)
export const MODE_CARDS = inOrder.map((value) => ({
  value,
  title: MODES[value].title,
  text: MODES[value].text,
}))

/** What nine in ten machines need. */
const MOST = 2

/** `value`: the selected mode, null if nobody has decided; `standing`: in place of the text of the stored one. */
export function renderModes(value: string | null, stored: BootMode, standing: string | null): Html {
  const cards = MODE_CARDS.map((card) =>
    card.value === stored ? { ...card, text: standing ?? card.text } : card,
  )
  const isShown = (card: RadioCard, at: number) => at < MOST || card.value === value
  return html`${radioCards({
    name: 'boot_mode',
    legend: 'On network boot',
    value,
    stored,
    className: 'modes',
    before: html`<p class="hint unscripted-only">
      An image and a disk alone flash nothing: select ${MODES[USUAL_FLASH_MODE].title} as well.
    </p>`,
    cards: cards.filter(isShown),
    others: cards.filter((card, at) => !isShown(card, at)),
  })}${hidden({ kept_boot_mode: value === null ? stored : null })}`
}
