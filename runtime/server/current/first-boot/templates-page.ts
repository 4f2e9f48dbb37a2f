/** /ui/first-boot: the first-boot templates, and the page of each with its form. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import {
  MAX_TEMPLATES,
  TemplateNameSchema,
  type NamedTemplate,
  type Template,
  hideSecrets,
} from '#engine/first-boot/rules/template.ts'
import { fill, fillCount } from '#kit/foundation/text.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { banner, card, emptyState } from '#kit/web/ui/elements.ts'
import { address, fillHtml, html, type Content, type Html, attributes } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { countMachines, createTemplateResource } from './template-routes.ts'
import { formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { renderCurlBlock, blank, type CurlCall } from '#server/pages/curl-block.ts'
import { questionButton, showRemoval } from '#server/pages/question.ts'
import {
  parseFields,
  hideTyped,
  readFields,
  type FieldTexts,
  renderPreviewTexts,
  fieldsOf,
  listKept,
  SECTIONS,
  type Section,
  FORM_ID,
  renderPreviewCard,
  fieldName,
  listFileRows,
  listUserRows,
} from './template-form.ts'
import { TEMPLATES_PATH, templatePath } from './machine-card.ts'
import { textField, areaField, checkField, hidden, selectField } from '#kit/web/ui/fields.ts'

interface FormState {
  readonly fields: FieldTexts
  readonly errors: FieldTexts
  readonly kept: readonly Section[]
}

/** Empty rows that open without a script; a saved page has more. */
const SPARE_ROWS = 3

function renderFields(state: FormState): Html {
  const { kept } = state
  return html`${hidden({ shown: SECTIONS.filter((section) => !kept.includes(section)).join(' ') })}
  ${GROUPS.map(([title, ...sections]) => {
    const shown = sections.filter((section) => !kept.includes(section))
    const fields = shown.map((section) => FIELDS[section](state))
    return title === null || shown.length === 0
      ? fields
      : html`<details ${attributes({ open: shown.some((section) => isUsed(section, state)) })}>
          <summary>${title}</summary>
          ${fields}
        </details>`
  })}`
}

/** Those with a title are folded while they hold nothing. */
const GROUPS: readonly (readonly [title: string | null, ...Section[]])[] = [
  [null, 'hostname', 'users'],
  ['Packages, files and commands', 'packages', 'files', 'commands'],
  ['Network', 'network'],
  ['A whole text instead of users, packages, files and commands', 'user_data'],
  [null, 'secrets'],
]

const isUsed = (section: Section, { fields, errors }: FormState): boolean =>
  section === 'files'
    ? listFileRows(fields).length > 0
    : !['', 'image'].includes(fields[section] ?? '') || section in errors

const TEMPLATE_FORM = {
  user: { title: 'Users', one: 'User {number}', add: 'Add a user' },
  file: { title: 'Files', one: 'File {number}', add: 'Add a file' },
} as const

const FIELDS: Readonly<Record<Section, (state: FormState) => Content>> = {
  hostname: (state) =>
    textField({
      ...fieldOf(state, 'hostname'),
      label: 'Host name',
      mono: true,
      placeholder: '{{name}}',
      maxLength: 253,
      hint: 'A MAC address is written with hyphens here.',
    }),
  users: (state) => renderRows('user', listUserRows(state.fields), state),
  packages: (state) =>
    areaField({
      ...fieldOf(state, 'packages'),
      label: 'Packages',
      rows: 2,
      hint: 'Separate with spaces. They need a network and a package source; Ignition cannot install any.',
    }),
  files: (state) => renderRows('file', listFileRows(state.fields), state),
  network: renderNetwork,
  commands: (state) =>
    areaField({
      ...fieldOf(state, 'commands'),
      label: 'Commands',
      rows: 3,
      hint: 'One per line, run as root at the end of the first boot.',
    }),
  user_data: (state) =>
    areaField({
      ...fieldOf(state, 'user_data'),
      label: 'User data',
      rows: 6,
      hint: fillHtml(
        '#cloud-config, a script, or an Ignition configuration (JSON, version 3). Write {braces} for braces that are not a placeholder.',
        { braces: html`<code>\\{{</code>` },
      ),
    }),
  secrets: (state) =>
    areaField({
      ...fieldOf(state, 'secrets'),
      label: 'Secrets',
      rows: 2,
      hint: fillHtml(
        'One per line: name=value. Use {placeholder} in the texts above. Values are shown as dots here and appear in no event, export or log.',
        { placeholder: html`<code>{{secret.name}}</code>` },
      ),
    }),
}

const fieldOf = ({ fields, errors }: FormState, name: string) => ({
  name,
  value: fields[name] ?? '',
  error: errors[name] ?? null,
})

/** Used rows, at least one open, then spare ones. */
function renderRows(kind: 'user' | 'file', used: readonly number[], state: FormState): Html {
  const shown = kind === 'user' && used.length === 0 ? [0] : used
  const free = Math.max(-1, ...shown) + 1
  return html`<fieldset class="rows-of">
    <legend>${TEMPLATE_FORM[kind].title}</legend>
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
        <summary>${TEMPLATE_FORM[kind].add}</summary>
        ${renderRow(kind, row, { number, state })}
        ${renderSpare(kind, { row: row + 1, number: number + 1, left: left - 1, state })}
      </details>`

interface NumberedRow {
  readonly number: number
  readonly state: FormState
}

const renderRow = (kind: 'user' | 'file', row: number, { number, state }: NumberedRow): Html =>
  html`<fieldset class="row-of">
    <legend>${fill(TEMPLATE_FORM[kind].one, { number })}</legend>
    ${kind === 'user' ? renderUser(row, state) : renderFile(row, state)}
  </fieldset>`

function renderUser(row: number, state: FormState): Html {
  const name = (part: string) => fieldName('user', row, part)
  return html`${textField({ ...fieldOf(state, name('name')), label: 'User name', mono: true, maxLength: 32 })}
  ${areaField({ ...fieldOf(state, name('keys')), label: 'SSH keys', rows: 2, hint: 'Public keys, one per line.' })}
  ${checkField({ name: name('sudo'), label: 'Administrator: sudo without a password', checked: (state.fields[name('sudo')] ?? '') !== '' })}
  ${textField({ ...fieldOf(state, name('password')), label: 'Password hash', mono: true, maxLength: 512, hint: fillHtml('Optional; without one the password is locked. {command} makes a hash, which is kept as a secret.', { command: html`<code>mkpasswd</code>` }) })}`
}

function renderFile(row: number, state: FormState): Html {
  const name = (part: string) => fieldName('file', row, part)
  const mode = fieldOf(state, name('mode'))
  return html`${textField({ ...fieldOf(state, name('path')), label: 'Path', mono: true, maxLength: 1024, placeholder: '/etc/motd' })}
  ${textField({ ...mode, value: mode.value || '0644', label: 'Mode', mono: true, maxLength: 4, hint: fillHtml('Readable by all unless it is {private}; {program} for programs. It belongs to root.', { private: html`<code>0600</code>`, program: html`<code>0755</code>` }) })}
  ${areaField({ ...fieldOf(state, name('text')), label: 'Text', rows: 4 })}`
}

/** The stylesheet shows the fields of the choice. */
function renderNetwork(state: FormState): Html {
  const { value, ...rest } = fieldOf(state, 'network')
  return html`<div class="network">
    ${selectField({
      ...rest,
      label: 'Addresses',
      value: value || 'image',
      options: Object.entries({
        image: 'As the image has it',
        dhcp: 'DHCP on all network cards',
        static: 'Static address',
        text: 'Network configuration as text',
      }).map(([kind, text]) => ({
        value: kind,
        text,
      })),
    })}
    <div class="by-static">
      ${textField({ ...fieldOf(state, 'address'), label: 'Address', mono: true, placeholder: '192.0.2.{{label.slot}}/24', hint: 'With its prefix length, for the network card that the machine boots from. A template for several machines needs a placeholder in it.' })}
      ${textField({ ...fieldOf(state, 'gateway'), label: 'Gateway', mono: true, placeholder: '192.0.2.1' })}
      ${textField({ ...fieldOf(state, 'nameservers'), label: 'Name servers', mono: true, placeholder: '192.0.2.1', hint: 'Separate with spaces.' })}
    </div>
    <div class="by-text">
      ${areaField({ ...fieldOf(state, 'network_text'), label: 'Network configuration', rows: 5, hint: 'Of cloud-init, version 1 or 2. Ignition does not take any.' })}
    </div>
  </div>`
}

/** The editor of a first-boot template: as a form or as one text, with a preview beside it. */

/** Characters that fit into the form that sends it back. */
const MAX_DOCUMENT = 100_000

interface Editor {
  readonly path: string
  readonly before: Template | null
  readonly isText: boolean
  readonly fields: FieldTexts
  readonly errors: FieldTexts
  readonly kept: readonly Section[]
}

function renderEditor(context: CurrentContext, found: NamedTemplate | null): Html {
  const editor = readEditor(context, found)
  const { path, before, isText, kept, fields } = editor
  const shown = SECTIONS.filter((each) => !kept.includes(each)).join(' ')
  const other = address(path, {
    new: before === null ? '1' : null,
    as: isText ? null : 'text',
  })
  return html`<div class="columns">
    ${card({
      title: before === null ? 'New template' : 'Template',
      id: 'template',
      aside: html`<a class="small" href="${other}">${isText ? 'As a form' : 'As text'}</a>`,
      body: html`${isText ? null : renderKept(kept, before, other)} ${renderForm(editor)}
      ${renderCurlBlock(context, [callTemplate(found)])}`,
    })}
    ${renderPreviewCard(path, parseFields(isText ? fields : { ...fields, shown }, before))}
  </div>`
}

/** What was typed and refused, else what is stored. */
function readEditor(context: CurrentContext, found: NamedTemplate | null): Editor {
  const template = found?.template ?? EMPTY
  const isText = context.query.get('as') === 'text'
  const notice = context.notice()
  return {
    path: found === null ? TEMPLATES_PATH : templatePath(found.name),
    before: found === null ? null : template,
    isText,
    fields: notice?.typed ?? (isText ? { document: renderDocument(template) } : fieldsOf(template)),
    errors: notice?.errors ?? {},
    kept: listKept(template),
  }
}

function renderForm({ path, before, isText, fields, errors, kept }: Editor): Html {
  return html`<form ${attributes({ id: FORM_ID, method: 'post', action: path })}>
    ${before === null ? renderName(fields, errors) : null}
    ${isText ? renderText(fields, errors) : renderFields({ fields, errors, kept })}
    <div class="row">
      <button class="primary">${before === null ? 'Create template' : 'Save'}</button>
      <button name="do" value="preview" formtarget="_blank" formnovalidate>Preview</button>
    </div>
  </form>`
}

/** As stored; dots keep secrets. */
const callTemplate = (found: NamedTemplate | null): CurlCall => ({
  method: 'PUT',
  path: `/first-boot/${found === null ? blank('name') : encodeURIComponent(found.name)}`,
  body: hideSecrets(found?.template ?? EMPTY),
  scope: 'admin',
})

const EMPTY: Template = {
  hostname: null,
  users: [],
  packages: [],
  commands: [],
  network: null,
  user_data: null,
  secrets: {},
}

const renderDocument = (template: Template): string =>
  JSON.stringify(hideSecrets(template), null, 2)

const renderText = (fields: FieldTexts, errors: FieldTexts): Content => {
  const document = fields['document'] ?? ''
  return document.length > MAX_DOCUMENT
    ? banner(
        'needs-you',
        'This template is too long for a form. Change it with PUT /first-boot/{name}.',
      )
    : areaField({
        name: 'document',
        label: 'Template',
        value: document,
        rows: 28,
        hint: 'JSON as in the API. Secrets that stay as dots keep their values.',
        error: errors['document'] ?? null,
      })
}

const renderName = (typed: FieldTexts, errors: FieldTexts): Html =>
  textField({
    name: 'name',
    label: 'Name',
    value: typed['name'] ?? '',
    required: true,
    autofocus: Object.keys(errors).length === 0,
    maxLength: 64,
    mono: true,
    hint: 'Letters, digits and . _ - of your choice.',
    error: errors['name'] ?? null,
  })

const TEMPLATE_SECTIONS = {
  hostname: 'host name',
  users: 'users',
  packages: 'packages',
  files: 'files',
  network: 'network',
  commands: 'commands',
  user_data: 'user data',
  secrets: 'secrets',
} as const

/** Parts that the form keeps and a text would replace. */
function renderKept(
  parts: readonly Section[],
  template: Template | null,
  textPath: string,
): Content {
  const names = parts.map((part) => TEMPLATE_SECTIONS[part]).join(', ')
  const link = html`<a href="${textPath}">as text</a>`
  return html`${(template?.user_data ?? null) === null ? null : banner('ready', 'This template is a text of its own (User data), which replaces users, packages, files and commands.')}
  ${
    parts.length === 0
      ? null
      : banner(
          'needs-you',
          html`Not shown here, and kept as it is: ${names}.
          ${fillHtml('This form cannot show all of it, such as a command of several lines. Edit it {link}.', { link })}`,
        )
  }`
}

/** In bytes: files and texts are longer once they are escaped. */
const MAX_FORM_BYTES = 512 * 1024

export const TEMPLATE_PAGES = [
  pageAt(TEMPLATES_PATH, 'read', showAll, { reach: 'list' }),
  formAt(TEMPLATES_PATH, 'admin', create, { most: MAX_FORM_BYTES, reach: 'list' }),
  pageAt(`${TEMPLATES_PATH}/:name`, 'read', show, { reach: 'list' }),
  formAt(`${TEMPLATES_PATH}/:name`, 'admin', save, { most: MAX_FORM_BYTES, reach: 'list' }),
  removalAt(`${TEMPLATES_PATH}/:name/delete`, 'admin', askRemoval, remove, { reach: 'list' }),
]

async function showAll(context: CurrentContext): Promise<Answer> {
  const mayCreate = context.site.mayOpen(context.event, TEMPLATES_PATH, 'POST')
  const isNew = mayCreate && context.query.has('new')
  return await context.show({
    title: isNew ? 'New template' : TITLE,
    learn: 'first-boot.html',
    ...(isNew ? { trail: TRAIL } : {}),
    actions:
      isNew || !mayCreate
        ? null
        : html`<a class="button primary" href="${TEMPLATES_PATH}?new=1">New template</a>`,
    messages: context.message(),
    body: isNew
      ? html`${renderEditor(context, null)} ${renderTokens(context)}`
      : card({
          id: 'templates',
          body: html`<p class="hint">${introduction()}</p>
            ${renderList(context, context.services.templates.list())}`,
        }),
  })
}

const TITLE = 'Templates'
const TRAIL = html`<a href="${TEMPLATES_PATH}">${TITLE}</a>`

const placeholder = (name: string): Html => html`<code>{{${name}}}</code>`

const introduction = (): Html =>
  fillHtml(
    'A template sets up a machine at the first boot after a flash, through cloud-init or Ignition. It is written with the image, before the disk can boot. Placeholders stand for the values of each machine: {name}, {mac}, {serial}, {label} (12 for the label rack-12) and {secret}.',
    {
      name: placeholder('name'),
      mac: placeholder('mac'),
      serial: placeholder('serial'),
      label: placeholder('label.rack'),
      secret: placeholder('secret.…'),
    },
  )

function renderList(context: CurrentContext, listed: readonly NamedTemplate[]): Content {
  if (listed.length === 0)
    return emptyState(
      'No templates',
      'Create one here, then assign it on the page of a machine or to a selection of machines.',
    )
  return html`<ul class="rows">
    ${listed.map(
      ({ name, updated_at }) =>
        html`<li>
          <span class="grow"
            ><a href="${templatePath(name)}"><bdi>${name}</bdi></a
            ><br />
            <span class="small dim"
              >${fillCount({ one: '{count} machine', other: '{count} machines' }, countMachines(context.site, name))}
              · saved ${renderTime(updated_at, context.clock())}</span
            ></span
          >
        </li>`,
    )}
  </ul>`
}

function renderTokens({ services }: CurrentContext): Html {
  const isRequired = services.config.current().pxe.tokens === 'require'
  const tokens = html`<a href="/ui/settings#pxe.tokens">boot tokens are required</a>`
  return banner(
    isRequired ? 'ready' : 'needs-you',
    isRequired
      ? html`Machines get templates with secrets because ${tokens}. Anyone on the boot network can
        still request them for an armed machine: use keys that register a machine once, not
        passwords of people.`
      : html`Machines get templates with secrets only if ${tokens}.`,
  )
}

async function create(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const fields = readFields(form)
  const drafted = parseFields(fields, null)
  if (fields['do'] === 'preview') return await preview(context, drafted)
  const name = (fields['name'] ?? '').trim()
  const refused = findNameMistake(context, name)
  const errors = { ...(refused === null ? {} : { name: refused }), ...errorsOf(drafted) }
  const back = { path: TEMPLATES_PATH, query: { new: '1', ...asOf(fields) } }
  if (!drafted.ok || refused !== null) return goBack(context, back, { fields, errors })
  return (await store(context, name, drafted.value))
    ? context.goTo(`${templatePath(name)}?saved=1`)
    : goBack(context, back, { fields, errors: {}, error: TOO_MANY })
}

const TOO_MANY = `Not saved: there are ${MAX_TEMPLATES} templates already.`

const errorsOf = (drafted: ReturnType<typeof parseFields>): FieldTexts =>
  drafted.ok ? {} : drafted.refusal

const asOf = ({ document }: FieldTexts) => (document === undefined ? {} : { as: 'text' })

function findNameMistake({ services }: CurrentContext, name: string): string | null {
  if (!TemplateNameSchema.safeParse(name).success)
    return 'Enter a name of letters, digits and . _ - that begins with a letter or a digit.'
  return services.templates.find(name) === null ? null : `There already is a template ${name}.`
}

interface Place {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
}

interface RefusedForm {
  readonly fields: FieldTexts
  readonly errors: FieldTexts
  readonly error?: string
}

const goBack = (
  context: CurrentContext,
  { path, query }: Place,
  { fields, errors, error }: RefusedForm,
): Answer =>
  context.goBack(path, {
    error: error ?? Object.values(errors).join(' '),
    text:
      error ??
      fillCount(
        {
          one: 'Not saved. Correct the field that is marked.',
          other: 'Not saved. Correct the {count} fields that are marked.',
        },
        Object.keys(errors).length,
      ),
    typed: hideTyped(fields),
    errors,
    query,
  })

async function preview(
  context: CurrentContext,
  drafted: ReturnType<typeof parseFields>,
): Promise<Answer> {
  return await context.show({
    title: 'Preview',
    trail: TRAIL,
    body: card({ title: 'Preview', body: renderPreviewTexts(drafted) }),
  })
}

/** False: too many templates. */
async function store(context: CurrentContext, name: string, template: Template): Promise<boolean> {
  const resource = createTemplateResource(context.site, context.services.templates)
  return (await resource.save({ ...template, name }, context.by())).ok
}

function find({ services, event }: CurrentContext): NamedTemplate {
  const found = services.templates.find(getRouterParam(event, 'name', { decode: true }) ?? '')
  if (found === null) throw refuse(404, 'no such first-boot template')
  return found
}

const IN_USE = {
  one: 'In use by {count} machine. Assign it another template first.',
  other: 'In use by {count} machines. Assign them another template first.',
} as const

async function show(context: CurrentContext): Promise<Answer> {
  const kept = find(context)
  const { name } = kept
  const count = countMachines(context.site, name)
  const isSaved = context.query.has('saved')
  return await context.show({
    title: `Template ${name}`,
    trail: TRAIL,
    heading: html`<bdi>${name}</bdi>`,
    count: fillCount({ one: '{count} machine', other: '{count} machines' }, count),
    messages: html`${context.message()}${isSaved ? banner('done', 'Saved. Machines get it with their next flash.') : null}`,
    body: html`${renderEditor(context, kept)} ${renderTokens(context)}
    ${card({
      title: 'Delete template',
      id: 'removal',
      body:
        count > 0
          ? html`<p>${fillCount(IN_USE, count)}</p>`
          : questionButton({
              action: `${templatePath(name)}/delete`,
              label: 'Delete template',
              tone: 'danger',
            }),
    })}`,
  })
}

async function save(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { name, template } = find(context)
  const fields = readFields(form)
  const drafted = parseFields(fields, template)
  if (fields['do'] === 'preview') return await preview(context, drafted)
  const path = templatePath(name)
  const back = { path, query: asOf(fields) }
  if (!drafted.ok) return goBack(context, back, { fields, errors: drafted.refusal })
  return (await store(context, name, drafted.value))
    ? context.goTo(address(path, { saved: '1', ...asOf(fields) }))
    : goBack(context, back, { fields, errors: {}, error: TOO_MANY })
}

async function askRemoval(context: CurrentContext): Promise<Answer> {
  const { name } = find(context)
  return await showRemoval(context, {
    title: 'Delete template',
    trail: TRAIL,
    question: html`Delete the template <bdi>${name}</bdi>?`,
    body: html`<p>It is gone for good. Machines that were set up with it stay as they are.</p>`,
    cancel: templatePath(name),
    button: 'Delete template',
    calls: [{ method: 'DELETE', path: `/first-boot/${encodeURIComponent(name)}`, scope: 'admin' }],
  })
}

async function remove(context: CurrentContext): Promise<Answer> {
  const { name } = find(context)
  const { site, services } = context
  const count = countMachines(site, name)
  if (count > 0) {
    return context.goBack(templatePath(name), { error: fillCount(IN_USE, count) })
  }
  await createTemplateResource(site, services.templates).remove(name, context.by())
  return context.goTo(TEMPLATES_PATH)
}
