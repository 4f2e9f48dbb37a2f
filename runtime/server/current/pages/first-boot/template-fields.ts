/** Draws the form of a first-boot template: people, packages, files, network, and what is left as text. */
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { areaField, checkField, hidden, selectField, textField } from '#kit/web/ui/fields.ts'
import { attributes, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import {
  fieldName,
  listFileRows,
  listUserRows,
  SECTIONS,
  type FieldTexts,
  type Section,
} from './template-form.ts'

const t = PAGES.firstBoot.form

interface FormState {
  readonly fields: FieldTexts
  readonly errors: FieldTexts
  readonly kept: readonly Section[]
}

/** Empty rows that open without a script; a saved page has more. */
const SPARE_ROWS = 3

export function renderFields(state: FormState): Html {
  const { kept } = state
  return html`${hidden({ shown: SECTIONS.filter((section) => !kept.includes(section)).join(' ') })}
  ${SECTIONS.map((section) => (kept.includes(section) ? null : FIELDS[section](state)))}`
}

export const renderDocumentField = (document: string, errors: FieldTexts): Html =>
  areaField({
    name: 'document',
    label: t.document,
    value: document,
    rows: 28,
    hint: t.documentHint,
    error: errors['document'] ?? null,
  })

type Renderer = (state: FormState) => Content

const FIELDS: Readonly<Record<Section, Renderer>> = {
  hostname: (state) =>
    textField({
      ...fieldOf(state, 'hostname'),
      label: t.hostname,
      mono: true,
      placeholder: '{{name}}',
      maxLength: 253,
      hint: t.hostnameHint,
    }),
  users: (state) => renderRows('user', listUserRows(state.fields), state),
  packages: (state) =>
    areaField({
      ...fieldOf(state, 'packages'),
      label: t.packages,
      rows: 2,
      hint: t.packagesHint,
    }),
  files: (state) => renderRows('file', listFileRows(state.fields), state),
  network: renderNetwork,
  commands: (state) =>
    areaField({ ...fieldOf(state, 'commands'), label: t.commands, rows: 3, hint: t.commandsHint }),
  user_data: renderUserData,
  secrets: (state) =>
    areaField({
      ...fieldOf(state, 'secrets'),
      label: t.secrets,
      rows: 2,
      hint: fillHtml(t.secretsHint, {
        placeholder: html`<code>{{secret.name}}</code>`,
        setting: html`<code>[pxe] tokens = require</code>`,
      }),
    }),
}

const fieldOf = ({ fields, errors }: FormState, name: string) => ({
  name,
  value: fields[name] ?? '',
  error: errors[name] ?? null,
})

/** Used rows, at least one open, then spare ones. */
function renderRows(kind: 'user' | 'file', used: readonly number[], state: FormState): Html {
  const next = Math.max(-1, ...used) + 1
  const shown = kind === 'user' && used.length === 0 ? [0] : used
  const free = Math.max(next, ...shown.map((row) => row + 1))
  return html`<fieldset class="rows-of">
    <legend>${t[kind].title}</legend>
    ${shown.map((row, at) => renderRow(kind, row, { number: at + 1, state }))}
    ${renderSpare(kind, { row: free, number: shown.length + 1, left: SPARE_ROWS, state })}
  </fieldset>`
}

interface SpareRow {
  readonly row: number
  readonly number: number
  readonly left: number
  readonly state: FormState
}

const renderSpare = (kind: 'user' | 'file', { row, number, left, state }: SpareRow): Content =>
  left === 0
    ? null
    : html`<details>
        <summary>${t[kind].add}</summary>
        ${renderRow(kind, row, { number, state })}
        ${renderSpare(kind, { row: row + 1, number: number + 1, left: left - 1, state })}
      </details>`

interface NumberedRow {
  readonly number: number
  readonly state: FormState
}

const renderRow = (kind: 'user' | 'file', row: number, { number, state }: NumberedRow): Html =>
  html`<fieldset class="row-of">
    <legend>${fill(t[kind].one, { number })}</legend>
    ${kind === 'user' ? renderUser(row, state) : renderFile(row, state)}
  </fieldset>`

function renderUser(row: number, state: FormState): Html {
  const name = (part: string) => fieldName('user', row, part)
  return html`${textField({ ...fieldOf(state, name('name')), label: t.user.name, mono: true, maxLength: 32 })}
  ${areaField({ ...fieldOf(state, name('keys')), label: t.user.keys, rows: 2, hint: t.user.keysHint })}
  ${checkField({ name: name('sudo'), label: t.user.sudo, checked: (state.fields[name('sudo')] ?? '') !== '' })}
  ${textField({ ...fieldOf(state, name('password')), label: t.user.password, mono: true, maxLength: 512, hint: fillHtml(t.user.passwordHint, { command: html`<code>mkpasswd</code>` }) })}`
}

function renderFile(row: number, state: FormState): Html {
  const name = (part: string) => fieldName('file', row, part)
  const mode = fieldOf(state, name('mode'))
  return html`${textField({ ...fieldOf(state, name('path')), label: t.file.path, mono: true, maxLength: 1024, placeholder: '/etc/motd' })}
  ${textField({ ...mode, value: mode.value || '0644', label: t.file.mode, mono: true, maxLength: 4, hint: fillHtml(t.file.modeHint, { private: html`<code>0600</code>`, program: html`<code>0755</code>` }) })}
  ${areaField({ ...fieldOf(state, name('text')), label: t.file.text, rows: 4 })}`
}

/** The stylesheet shows the fields of the choice. */
function renderNetwork(state: FormState): Html {
  const { value, ...rest } = fieldOf(state, 'network')
  return html`<fieldset class="network">
    <legend>${t.network.title}</legend>
    ${selectField({
      ...rest,
      label: t.network.kind,
      value: value || 'image',
      options: Object.entries(t.network.kinds).map(([kind, text]) => ({ value: kind, text })),
    })}
    <div class="by-static">
      ${textField({ ...fieldOf(state, 'address'), label: t.network.address, mono: true, placeholder: '192.0.2.{{label.slot}}/24', hint: t.network.addressHint })}
      ${textField({ ...fieldOf(state, 'gateway'), label: t.network.gateway, mono: true, placeholder: '192.0.2.1' })}
      ${textField({ ...fieldOf(state, 'nameservers'), label: t.network.nameservers, mono: true, placeholder: '192.0.2.1', hint: t.network.nameserversHint })}
    </div>
    <div class="by-text">
      ${areaField({ ...fieldOf(state, 'network_text'), label: t.network.text, rows: 5, hint: t.network.textHint })}
    </div>
  </fieldset>`
}

function renderUserData(state: FormState): Html {
  const field = fieldOf(state, 'user_data')
  return html`<details ${attributes({ open: field.value !== '' || field.error !== null })}>
    <summary>${t.userDataOpen}</summary>
    ${areaField({ ...field, label: t.userData, rows: 6, hint: fillHtml(t.userDataHint, { braces: html`<code>\\{{</code>` }) })}
  </details>`
}
