/** The parameters of an action on many machines: an image to find, what to do on network boot, labels. */
import { NAME_FOR_EACH } from '#engine/capture/rules/capture-name.ts'
import { isFlashable, type CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { ImageChannel } from '#fleet/channel/rules/channel.ts'
import { parseImageChoice } from '#server/current/channels/rules/image-choice.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, pluralOf } from '#kit/texts/text.ts'
import {
  checkField,
  hidden,
  radioCards,
  selectField,
  textField,
  type RadioCard,
} from '#kit/web/ui/fields.ts'
import { html, type Html } from '#kit/web/ui/html.ts'
import { splitLabels } from '#server/current/rules/label.ts'
import { renderQuestion } from '#server/pages/question.ts'
import { aboutImage } from '../view/next-boot.ts'
import { titleOf, type BulkAction } from './bulk-bar.ts'
import { AT_ONCE, backOf, BULK_PATH, keptOf } from './bulk-question.ts'
import { keywordsOf, renderChannelCards } from './image-cards.ts'
import { MODE_CARDS } from './mode-cards.ts'

const t = PAGES.machines.bulk
const { form: fields, images: cards } = PAGES.machine

/** Null: not asked for yet, or an image is still being searched. */
export const readParameters = (action: BulkAction, form: URLSearchParams): object | null =>
  form.has('finding') ? null : (PARAMETERS[action] ?? (() => ({})))(form)

/** By the field that shows that parameters were asked for. */
const PARAMETERS: Partial<Readonly<Record<BulkAction, (form: URLSearchParams) => object | null>>> =
  {
    image(form) {
      const value = form.get('bty_image_ref')
      if (value === null) return null
      const { channel, ref } = parseImageChoice(value)
      return { bty_image_ref: ref || null, ...(channel === null ? {} : { channel }) }
    },
    mode(form) {
      const boot_mode = form.get('boot_mode')
      return boot_mode === null ? null : { boot_mode }
    },
    'first-boot'(form) {
      const name = form.get('first_boot')
      return name === null ? null : { first_boot: name || null }
    },
    label(form) {
      const [add, remove] = [form.get('add'), form.get('remove')]
      if (add === null) return null
      return { add: splitLabels(add), remove: splitLabels(remove ?? '') }
    },
    capture(form) {
      const name = form.get('capture_name')
      return name === null ? null : { name: name.trim(), generalize: form.has('generalize') }
    },
  }

const FIELDS_OF: Partial<Readonly<Record<BulkAction, readonly string[]>>> = {
  image: ['bty_image_ref'],
  capture: ['capture_name', 'generalize'],
}

interface BulkChoices {
  readonly images: readonly CatalogEntry[]
  readonly channels: readonly ImageChannel[]
  readonly templates: readonly { readonly value: string; readonly text: string }[]
  readonly error: string | null
}

export const renderParameterForm = (
  action: BulkAction,
  count: number,
  form: URLSearchParams,
  choices: BulkChoices,
): Html =>
  renderQuestion({
    title: fill(pluralOf(t.parameters.title, count), { action: titleOf(action), count }),
    form: {
      action: BULK_PATH,
      fields: html`${keptOf(form, FIELDS_OF[action] ?? [])}
      ${action === 'capture' ? null : hidden({ [AT_ONCE]: '1' })}
      ${renderFields(action, form, choices)}`,
      cancel: backOf(form),
      button: html`<button class="primary">
        ${action === 'capture' ? t.preview : html`${titleOf(action)} (${count})`}
      </button>`,
    },
  })

function renderFields(
  action: BulkAction,
  form: URLSearchParams,
  { images, channels, templates, error }: BulkChoices,
): Html {
  if (action === 'first-boot') {
    return selectField({
      name: 'first_boot',
      label: PAGES.firstBoot.card.template,
      value: '',
      options: templates,
    })
  }
  if (action === 'capture') {
    return html`${textField({
      name: 'capture_name',
      label: t.parameters.captureNames,
      hint: fill(t.parameters.captureNamesHint, { name: '{name}', mac: '{mac}' }),
      error,
      value: form.get('capture_name') ?? NAME_FOR_EACH,
      required: true,
      maxLength: 255,
    })}
    ${checkField({
      name: 'generalize',
      label: PAGES.machine.capture.generalize,
      hint: PAGES.machine.capture.generalizeHint,
      checked: error === null || form.has('generalize'),
    })}`
  }
  if (action === 'image') {
    const offered = images.filter(isFlashable)
    return renderPicker(form, offered, renderChannelCards({ images: offered, channels }))
  }
  if (action === 'mode') {
    return radioCards({
      name: 'boot_mode',
      legend: fields.mode,
      value: null,
      className: 'modes',
      cards: MODE_CARDS,
    })
  }
  return html`${textField({ name: 'add', label: t.parameters.addLabels, hint: t.parameters.addLabelsHint })}
  ${textField({ name: 'remove', label: t.parameters.removeLabels })}`
}

/** The search finds further ones. */
const MAX_CARDS = 100

/** A script filters while somebody types; without one, Find does. */
function renderPicker(
  form: URLSearchParams,
  images: readonly CatalogEntry[],
  channels: readonly RadioCard[],
): Html {
  const find = (form.get('find') ?? '').slice(0, 200)
  const selected = form.get('bty_image_ref')
  const words = find.toLowerCase().split(/\s+/)
  const isFound = (keywords: string) => words.every((word) => keywords.toLowerCase().includes(word))
  const found = images.filter((image) => image.ref === selected || isFound(keywordsOf(image)))
  return radioCards({
    name: 'bty_image_ref',
    legend: fields.image,
    value: selected,
    className: 'images',
    before: html`<div class="row finder">
        <input
          type="search"
          name="find"
          value="${find}"
          data-filter=".images"
          aria-label="${cards.find}"
          placeholder="${cards.find}"
          autocomplete="off"
        />
        <button name="finding" value="1">${t.parameters.find}</button>
      </div>
      ${found.length === 0 ? html`<p class="hint">${t.parameters.noneMatches}</p>` : null}
      ${
        found.length > MAX_CARDS
          ? html`<p class="hint">
              ${fill(t.parameters.tooMany, { shown: MAX_CARDS, count: found.length })}
            </p>`
          : null
      }`,
    cards: [
      ...channels.filter(({ keywords }) => isFound(keywords ?? '')),
      { value: '', title: cards.none, keywords: cards.noneKeywords },
      ...found.slice(0, MAX_CARDS).map((image) => ({
        value: image.ref,
        title: image.name,
        text: html`${image.format},
        ${aboutImage(image)}${image.arch === null ? null : html`, ${image.arch}`}`,
        keywords: keywordsOf(image),
      })),
    ],
  })
}
