/** The field of a setting, which follows from its kind: a switch, a choice, a number, a text, a secret, a list. */
import type { ShownSetting } from '../../../../kit/config/rules/shown-setting.ts'
import {
  areaControl,
  inputControl,
  selectControl,
  switchControl,
} from '../../../../kit/web/ui/fields.ts'
import { attributes, html, type Content, type Html } from '../../../../kit/web/ui/html.ts'
import { fill } from '../../../../kit/texts/text.ts'
import { PAGES } from '../../../texts/texts.ts'
import { describeValue, findTexts } from './setting-texts.ts'

const t = PAGES.settings.fields

/**
 * What the field of a setting holds before anybody changes it: the value where one is set, the
 * default where the field always has one, and nothing of a secret.
 */
export function inputOf({ setting, value, origin }: ShownSetting): string {
  const { as } = setting.field
  if (as === 'secret') return ''
  return origin.by === 'default' && as !== 'toggle' && as !== 'choice' ? '' : setting.toField(value)
}

interface FieldView {
  readonly id: string
  /** Name of the form's field. */
  readonly name?: string
  /** What was typed and refused, else `inputOf`. */
  readonly text: string
  readonly isWrong: boolean
  /** Ids of what explains it. */
  readonly describedBy: string
}

/** The control alone: label, hint and error are the row's. */
export function renderControl(row: ShownSetting, view: FieldView): Html {
  const { field } = row.setting
  const { text } = view
  const base = { name: row.name, ...view }
  // Shown grey in an empty field: what counts then.
  const placeholder = row.setting.toField(row.setting.fallback)
  switch (field.as) {
    case 'toggle':
      return switchControl({ ...base, checked: text === 'true' })
    case 'choice':
      return selectControl({
        ...base,
        value: text,
        options: field.names.map((value) => ({
          value,
          text: findTexts(row.name)?.labels[value] ?? value,
        })),
      })
    case 'number':
      return inputControl({
        ...base,
        value: text,
        short: true,
        type: 'number',
        min: field.least,
        max: field.most,
        placeholder,
      })
    case 'duration':
    case 'size':
      return inputControl({ ...base, value: text, placeholder, short: true })
    case 'text':
      return renderText(row, base, placeholder)
    case 'secret':
      return renderSecret(row, base, field.rows)
    case 'list':
      return areaControl({
        ...base,
        value: text,
        rows: Math.min(8, text.split('\n').length + 1),
      })
  }
}

function renderText(
  { setting: { field } }: ShownSetting,
  view: FieldView & { readonly name: string },
  placeholder: string,
): Html {
  if (field.as !== 'text') return html``
  const list = field.suggest === undefined ? null : `${view.id}-list`
  return html`${inputControl({
    ...view,
    value: view.text,
    type: field.keyboard ?? 'text',
    placeholder,
    mono: true,
    list,
  })}${
    field.suggest === undefined || list === null
      ? null
      : html`<datalist id="${list}">
          ${field.suggest().map((value) => html`<option${attributes({ value })}></option>`)}
        </datalist>`
  }`
}

/** What a browser knows of passwords must not get into it. */
const renderSecret = (
  { shown }: ShownSetting,
  view: FieldView & { readonly name: string },
  rows: number,
): Html => {
  const placeholder = shown === 'set' ? t.secret.set : t.secret.unset
  return rows === 1
    ? inputControl({
        ...view,
        value: '',
        type: 'password',
        autocomplete: 'new-password',
        placeholder,
      })
    : areaControl({ ...view, value: '', rows, placeholder })
}

/** What may be written into the field. */
export function renderHint({ setting, name }: ShownSetting): Content {
  const { field } = setting
  switch (field.as) {
    case 'toggle':
    case 'choice':
      return null
    case 'number': {
      const { least, most } = field
      const zero = findTexts(name)?.labels['0']
      const range = fill(t.number, { least, most })
      return zero === undefined ? range : `${range} ${fill(t.zero, { meaning: zero })}`
    }
    case 'duration':
      return field.least === 0
        ? t.duration
        : fill(t.longDuration, { least: describeValue(name, setting, field.least) })
    case 'size': {
      const zero = findTexts(name)?.labels['0']
      return zero === undefined ? t.size : `${t.size} ${fill(t.zero, { meaning: zero })}`
    }
    case 'text':
      return fill(t.text, { example: field.example })
    case 'secret':
      return t.secret[field.rows === 1 ? 'hint' : 'options']
    case 'list':
      return fill(t.list, { example: field.example })
  }
}
