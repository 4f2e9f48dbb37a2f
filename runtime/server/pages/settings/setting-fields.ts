/** The field of a setting, which follows from its kind: a switch, a choice, a number, a text, a secret, a list. */
import type { ShownSetting } from '#kit/config/rules/settings-parser.ts'
import { areaControl, inputControl, selectControl, switchControl } from '#kit/web/ui/fields.ts'
import { attributes, html, type Html } from '#kit/web/ui/html.ts'
import type { Setting } from '#kit/config/rules/setting.ts'
import { renderDuration } from '#kit/config/rules/setting-kinds.ts'

/** Empty for secrets; the default where the field always has a value. */
export function inputOf({ setting, value, origin }: ShownSetting): string {
  const { as } = setting.field
  if (as === 'secret') return ''
  return origin.by === 'default' && as !== 'toggle' && as !== 'choice' ? '' : setting.toField(value)
}

interface FieldView {
  readonly id: string
  readonly name?: string
  /** What was typed and refused, else `inputOf`. */
  readonly text: string
  readonly isWrong: boolean
  readonly describedBy: string
}

/** Without label, hint and error. */
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
          text: row.setting.labels[value] ?? value,
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

/** Keeps password managers out. */
const renderSecret = (
  { shown }: ShownSetting,
  view: FieldView & { readonly name: string },
  rows: number,
): Html => {
  const placeholder = shown === 'set' ? 'Set, not shown' : 'Not set'
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

/** Null: the field shows it itself. */
export function renderHint(row: ShownSetting): string | null {
  const { field } = row.setting
  switch (field.as) {
    case 'toggle':
    case 'choice':
      return null
    case 'number':
      return `${field.least} to ${field.most}.`
    case 'duration':
      return hintOfSpan(row, field.least)
    case 'size':
      return 'Such as 500 MB or 10 GiB.'
    case 'text':
      return `Such as ${field.example}.`
    case 'secret':
      return field.rows === 1
        ? 'Type a new value to replace it. It is never shown.'
        : 'As JSON, such as {"bucket": "backups"}. Type all of them to replace them.'
    case 'list':
      return `One per line, such as ${field.example}.`
  }
}

const hintOfSpan = ({ setting }: ShownSetting, least: number): string =>
  least === 0
    ? 'Such as 30 s, 5 min, 24 h or 7 days; or never.'
    : `At least ${describeValue(setting, least)}, such as 24 h or 7 days; or never.`

/** `On`, `30 minutes`, `200 GiB`, `No limit`; empty: no value. */
export function describeValue(setting: Setting<unknown>, value: unknown): string {
  const label = setting.labels[String(value)]
  if (label !== undefined) return label
  if (typeof value === 'boolean') return value ? 'On' : 'Off'
  if (setting.field.as === 'duration' && typeof value === 'number') return describeSpan(value)
  return setting.toField(value).replaceAll('\n', ', ')
}

const WORDS: Readonly<Record<string, string>> = {
  s: 'second',
  min: 'minute',
  h: 'hour',
  d: 'day',
  w: 'week',
}

/** `30 minutes`, `1 day`. */
function describeSpan(seconds: number): string {
  const [count = '', unit = ''] = renderDuration(seconds).split(' ')
  const word = WORDS[unit]
  if (word === undefined) return 'Never'
  return new Intl.NumberFormat('en', {
    style: 'unit',
    unit: word,
    unitDisplay: 'long',
    useGrouping: false,
  }).format(Number(count))
}

export function describeFallback(setting: Setting<unknown>): string {
  const words = setting.fallbackWords?.replaceAll('`', '')
  return words ?? (describeValue(setting, setting.fallback) || 'none')
}
