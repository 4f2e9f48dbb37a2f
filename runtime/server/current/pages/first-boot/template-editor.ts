/** The editor of a first-boot template: as a form or as one text, with a preview beside it. */
import {
  hideSecrets,
  type NamedTemplate,
  type Template,
} from '#engine/first-boot/rules/template.ts'
import { fill } from '#kit/texts/text.ts'
import { banner, card } from '#kit/web/ui/elements.ts'
import { textField } from '#kit/web/ui/fields.ts'
import { address, attributes, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { blank, renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { parseFields } from './template-check.ts'
import { renderDocumentField, renderFields } from './template-fields.ts'
import { fieldsOf, listKept, SECTIONS, type FieldTexts, type Section } from './template-form.ts'
import { TEMPLATES_PATH, templatePath } from './template-path.ts'
import { FORM_ID, renderPreviewCard } from './template-preview.ts'

const t = PAGES.firstBoot

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

export function renderEditor(context: CurrentContext, found: NamedTemplate | null): Html {
  const editor = readEditor(context, found)
  const { path, before, isText, kept, fields } = editor
  const shown = SECTIONS.filter((each) => !kept.includes(each)).join(' ')
  const other = address(path, {
    new: before === null ? '1' : null,
    as: isText ? null : 'text',
  })
  return html`<div class="columns">
    ${card({
      title: before === null ? t.create : t.template,
      id: 'template',
      aside: html`<a class="small" href="${other}">${isText ? t.asForm : t.asText}</a>`,
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
      <button class="primary">${before === null ? t.createButton : t.saveButton}</button>
      <button name="do" value="preview" formtarget="_blank" formnovalidate>
        ${t.preview.button}
      </button>
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
    ? banner('needs-you', t.tooLong)
    : renderDocumentField(document, errors)
}

const renderName = (typed: FieldTexts, errors: FieldTexts): Html =>
  textField({
    name: 'name',
    label: t.form.name,
    value: typed['name'] ?? '',
    required: true,
    autofocus: Object.keys(errors).length === 0,
    maxLength: 64,
    mono: true,
    hint: t.form.nameHint,
    error: errors['name'] ?? null,
  })

/** Parts that the form keeps and a text would replace. */
function renderKept(
  parts: readonly Section[],
  template: Template | null,
  textPath: string,
): Content {
  const names = parts.map((part) => t.sections[part]).join(', ')
  const link = html`<a href="${textPath}">${t.kept.link}</a>`
  return html`${(template?.user_data ?? null) === null ? null : banner('ready', t.isText)}
  ${
    parts.length === 0
      ? null
      : banner(
          'needs-you',
          html`${fill(t.kept.title, { parts: names })} ${fillHtml(t.kept.text, { link })}`,
        )
  }`
}
