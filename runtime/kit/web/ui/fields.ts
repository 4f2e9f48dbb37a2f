/** Form fields: a label, the control, a hint, and the error where there is one. */
import { attributes, html, type Content, type Html } from './html.ts'

interface FieldBase {
  readonly name: string
  readonly label: Content
  readonly hint?: Content
  /** Why the value was refused. */
  readonly error?: string | null
}

interface TextField extends FieldBase {
  readonly value?: string
  readonly type?: 'text' | 'password' | 'search' | 'number' | 'url'
  readonly placeholder?: string
  readonly autocomplete?: string
  readonly required?: boolean
  readonly autofocus?: boolean
  readonly mono?: boolean
  readonly minLength?: number
  readonly maxLength?: number
  readonly min?: number
  readonly max?: number
}

const describedBy = ({ name, hint, error }: FieldBase): string | null =>
  [error ? `${name}-error` : '', hint === undefined ? '' : `${name}-hint`]
    .filter(Boolean)
    .join(' ') || null

const wrap = (field: FieldBase, control: Content): Html =>
  html`<div class="field">
    <label for="${field.name}">${field.label}</label>
    ${control}
    ${field.hint === undefined ? null : html`<p class="hint" id="${field.name}-hint">${field.hint}</p>`}
    ${field.error ? html`<p class="error" id="${field.name}-error">${field.error}</p>` : null}
  </div>`

export const textField = (field: TextField): Html =>
  wrap(
    field,
    html`<input${attributes({
      id: field.name,
      name: field.name,
      type: field.type ?? 'text',
      value: field.value,
      placeholder: field.placeholder,
      autocomplete: field.autocomplete ?? 'off',
      required: field.required,
      autofocus: field.autofocus,
      minlength: field.minLength,
      maxlength: field.maxLength,
      min: field.min,
      max: field.max,
      class: field.mono === true ? 'mono' : null,
      spellcheck: field.mono === true ? 'false' : null,
      'aria-invalid': field.error ? 'true' : null,
      'aria-describedby': describedBy(field),
    })} />`,
  )

interface AreaField extends FieldBase {
  readonly value: string
  readonly rows: number
}

/** Several lines of text, for programs rather than people. */
export const areaField = (field: AreaField): Html =>
  wrap(
    field,
    // The first line break behind the tag is not part of the text.
    html`<textarea${attributes({
      id: field.name,
      name: field.name,
      rows: field.rows,
      class: 'mono',
      spellcheck: 'false',
      autocomplete: 'off',
      'aria-describedby': describedBy(field),
    })}>
${field.value}</textarea>`,
  )

interface Option {
  readonly value: string
  readonly text: string
}

export const selectField = (
  field: FieldBase & { readonly value: string; readonly options: readonly Option[] },
): Html =>
  wrap(
    field,
    html`<select${attributes({
      id: field.name,
      name: field.name,
      'aria-describedby': describedBy(field),
    })}>${field.options.map(
      ({ value, text }) =>
        html`<option${attributes({ value, selected: value === field.value })}>${text}</option>`,
    )}</select>`,
  )

interface CheckField extends Omit<FieldBase, 'error'> {
  readonly value?: string
  readonly checked: boolean
}

export const checkField = ({ name, label, value = '1', checked, hint }: CheckField): Html =>
  html`<div class="field">
    <label class="check"
      ><input${attributes({ type: 'checkbox', name, value, checked })} />
      <span>${label}</span></label
    >${hint === undefined ? null : html`<p class="hint">${hint}</p>`}
  </div>`

export interface RadioCard {
  readonly value: string
  readonly title: Content
  readonly text?: Content
  readonly disabled?: boolean
  /** What the search field above the cards looks in. */
  readonly keywords?: string
  readonly className?: string
}

interface RadioGroup {
  /** The options get ids as well, so that they stay themselves when the list is refreshed. */
  readonly id?: string
  readonly name: string
  readonly legend: Content
  readonly value: string | null
  /** What is in force now; the stylesheet sees whether something else is selected. */
  readonly stored?: string
  readonly cards: readonly RadioCard[]
  readonly before?: Content
  readonly className?: string
}

/** Radio buttons as cards; the arrow keys move between them as usual. */
export const radioCards = (group: RadioGroup): Html =>
  html`<fieldset class="${`cards ${group.className ?? ''}`.trim()}" ${attributes({ id: group.id })}>
    <legend>${group.legend}</legend>
    ${group.before}
    <div class="options">${group.cards.map((each) => radioCard(group, each))}</div>
  </fieldset>`

const radioCard = ({ id, name, value, stored }: RadioGroup, each: RadioCard): Html =>
  html`<label
    class="${`option ${each.className ?? ''}`.trim()}"
    ${attributes({ id: id && `${id}-${encodeId(each.value)}`, 'data-keywords': each.keywords })}
  >
    <input${attributes({
      type: 'radio',
      name,
      value: each.value,
      checked: each.value === value,
      disabled: each.disabled,
      'data-stored': each.value === stored,
    })} />
    <span class="what"
      ><span class="title">${each.title}</span>${
        each.text === undefined ? null : html`<span class="text">${each.text}</span>`
      }</span
    >
  </label>`

/** Any text as part of an id. */
const encodeId = (text: string): string => Buffer.from(text).toString('base64url')

/** Hidden fields; null and undefined leave none. */
export const hidden = (values: Readonly<Record<string, string | null | undefined>>): Html =>
  html`${Object.entries(values).map(([name, value]) =>
    value === null || value === undefined
      ? null
      : html`<input${attributes({ type: 'hidden', name, value })} />`,
  )}`

interface PostForm {
  readonly action: string
  readonly label: Content
  readonly values?: Readonly<Record<string, string | null | undefined>>
  readonly tone?: 'primary' | 'danger' | 'plain'
  readonly disabled?: string | null
}

/** A form of one button. `disabled` is the reason, shown on hover. */
export const postButton = ({
  action,
  label,
  values = {},
  tone = 'plain',
  disabled,
}: PostForm): Html =>
  html`<form method="post" action="${action}" class="inline">${hidden(values)}<button${attributes({
    class: tone,
    disabled: disabled ? true : null,
    title: disabled,
  })}>${label}</button></form>`
