/** Form fields: a label, the control, a hint, and the error where there is one. */
import { attributes, type Content, html, type Html } from './html.ts'

interface FieldBase {
  /** Where the name is the id of something else on the page. */
  readonly id?: string
  readonly name: string
  readonly label: Content
  readonly hint?: Content
  readonly error?: string | null
}

interface Control {
  readonly id?: string
  readonly name: string
  readonly isWrong?: boolean
  /** Ids of what explains it. */
  readonly describedBy?: string | null
}

interface InputControl extends Control {
  readonly value?: string
  readonly type?: 'text' | 'password' | 'search' | 'number' | 'url'
  readonly placeholder?: string
  readonly autocomplete?: string
  readonly required?: boolean
  readonly autofocus?: boolean
  readonly mono?: boolean
  /** The field is short: it takes a few characters. */
  readonly short?: boolean
  readonly maxLength?: number
  readonly pattern?: string
  readonly form?: string
  readonly min?: number
  readonly max?: number
  /** The id of a `<datalist>`. */
  readonly list?: string | null
}

const controlOf = ({ id = '', name, hint, error }: FieldBase): Control => ({
  ...(id && { id }),
  name,
  isWrong: Boolean(error),
  describedBy:
    [error ? `${name}-error` : '', hint === undefined ? '' : `${name}-hint`]
      .filter(Boolean)
      .join(' ') || null,
})

const commonOf = ({ id, name, isWrong, describedBy }: Control) => ({
  id: id ?? name,
  name,
  'aria-invalid': isWrong === true ? 'true' : null,
  'aria-describedby': describedBy,
})

const wrap = (field: FieldBase, control: Content): Html =>
  html`<div class="field">
    <label for="${field.id ?? field.name}">${field.label}</label>
    ${control}
    ${field.hint === undefined ? null : html`<p class="hint" id="${field.name}-hint">${field.hint}</p>`}
    ${field.error ? html`<p class="error" id="${field.name}-error">${field.error}</p>` : null}
  </div>`

export const inputControl = (control: InputControl): Html =>
  html`<input${attributes({
    ...commonOf(control),
    type: control.type ?? 'text',
    value: control.value,
    placeholder: control.placeholder || null,
    autocomplete: control.autocomplete ?? 'off',
    required: control.required,
    autofocus: control.autofocus,
    maxlength: control.maxLength,
    pattern: control.pattern,
    form: control.form,
    min: control.min,
    max: control.max,
    list: control.list,
    class: control.mono === true ? 'mono' : control.short === true ? 'short' : null,
    spellcheck: control.mono === true ? 'false' : null,
  })} />`

export const textField = (
  field: FieldBase & Omit<InputControl, 'id' | 'isWrong' | 'describedBy'>,
): Html => wrap(field, inputControl({ ...field, ...controlOf(field) }))

interface AreaControl extends Control {
  readonly value: string
  readonly rows: number
  readonly placeholder?: string
}

export const areaControl = (control: AreaControl): Html =>
  // The first line break behind the tag is not part of the text.
  html`<textarea${attributes({
    ...commonOf(control),
    rows: control.rows,
    placeholder: control.placeholder,
    class: 'mono',
    spellcheck: 'false',
    autocomplete: 'off',
  })}>
${control.value}</textarea>`

/** For programs rather than people. */
export const areaField = (
  field: FieldBase & { readonly value: string; readonly rows: number },
): Html => wrap(field, areaControl({ ...field, ...controlOf(field) }))

interface SelectControl extends Control {
  readonly value: string
  readonly options: readonly { readonly value: string; readonly text: string }[]
}

export const selectControl = (control: SelectControl): Html =>
  html`<select${attributes(commonOf(control))}>${control.options.map(
    ({ value, text }) =>
      html`<option${attributes({ value, selected: value === control.value })}>${text}</option>`,
  )}</select>`

export const selectField = (field: FieldBase & Pick<SelectControl, 'value' | 'options'>): Html =>
  wrap(field, selectControl({ ...field, ...controlOf(field) }))

/** A form has `true` or `false`, the last of its name, because browsers leave out what is off. */
export const switchControl = (control: Control & { readonly checked: boolean }): Html =>
  html`${hidden({ [control.name]: 'false' })}<input${attributes({
      ...commonOf(control),
      type: 'checkbox',
      role: 'switch',
      value: 'true',
      checked: control.checked,
    })} />`

interface CheckField extends Omit<FieldBase, 'error'> {
  readonly value?: string
  readonly checked: boolean
}

/** A form has `value` where it is checked. */
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
  /** Rarely wanted, in a fold below the others. */
  readonly others?: readonly RadioCard[]
  readonly before?: Content
  readonly className?: string
}

/** The arrow keys move between them as usual. */
export const radioCards = (group: RadioGroup): Html =>
  html`<fieldset class="${`cards ${group.className ?? ''}`.trim()}" ${attributes({ id: group.id })}>
    <legend>${group.legend}</legend>
    ${group.before} ${renderOptions(group, group.cards)}
    ${
      group.others === undefined
        ? null
        : html`<details>
            <summary>Other</summary>
            ${renderOptions(group, group.others)}
          </details>`
    }
  </fieldset>`

const renderOptions = (group: RadioGroup, cards: readonly RadioCard[]): Html =>
  html`<div class="options">${cards.map((each) => radioCard(group, each))}</div>`

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

/** Null and undefined leave none. */
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

/** `disabled` is the reason, shown on hover. */
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

/** `mapNames(['a', 'b'], f)` is `{ a: f('a'), b: f('b') }`. */
export const mapNames = <const Name extends string, Value>(
  names: readonly Name[],
  valueOf: (name: Name) => Value,
): Readonly<Record<Name, Value>> =>
  // `fromEntries` forgets which names there are.
  Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<Name, Value>

const UPLOADS = {
  label: 'Upload',
  cancel: 'Cancel',
  cancelled: 'Cancelled.',
  checking: 'Checking…',
  progress: '{done} of {total}',
  pace: '{done} of {total}, {rate}/s, {time} left',
  lost: 'The connection was lost.',
  continues: 'The connection was lost. The upload continues as soon as it is back.',
  loggedOut: 'Your session has ended. Log in again, then select the file once more.',
  refused: '{name} was refused.',
  invalid: '{name} {reason}.',
  status: 'The server answered with status {status}.',
  unreadable: 'The file cannot be read.',
} as const

/** What the script says (`static/uploads.js`). */
const TEXTS = JSON.stringify(UPLOADS)

interface UploadForm {
  /** `files`: each is sent to an address of its own below `to`; `image`: in parts, which can be resumed. */
  readonly kind:
    | { readonly name: 'files'; readonly to: string }
    | { readonly name: 'image'; readonly partBytes: number }
  /** The address that opens afterwards; the names, or how many there are, are added to it. */
  readonly done: string
  readonly id: string
  readonly label: string
  readonly hint?: Content
  /** Endings of names, with commas between them. */
  readonly accept?: string
  readonly isMultiple?: boolean
  readonly fields?: Content
  readonly button: string
  /** Instead of the form, where there is no script. */
  readonly unscripted: string
}

export function renderUploadForm({ kind, done, id, hint, ...form }: UploadForm): Html {
  const target =
    kind.name === 'files' ? { 'data-to': kind.to } : { 'data-part': String(kind.partBytes) }
  return html`<form
      class="scripted-only"
      ${attributes({ 'data-upload': kind.name, ...target, 'data-texts': TEXTS, 'data-done': done })}
    >
      <div class="field">
        <label for="${id}">${form.label}</label>
        <input${attributes({
          id,
          type: 'file',
          required: true,
          multiple: form.isMultiple === true,
          accept: form.accept,
          'aria-describedby': hint === undefined ? null : `${id}-hint`,
        })} />
        ${hint === undefined ? null : html`<p class="hint" id="${id}-hint">${hint}</p>`}
      </div>
      ${form.fields}
      <button disabled>${form.button}</button>
      ${kind.name === 'files' ? html`<div class="upload-status" role="status"></div>` : null}
    </form>
    <p class="unscripted-only">${form.unscripted}</p>`
}
