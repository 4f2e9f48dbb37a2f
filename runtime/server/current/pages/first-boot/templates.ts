/** /ui/first-boot: the first-boot templates, and the page of each with its form. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import {
  MAX_TEMPLATES,
  TemplateNameSchema,
  type NamedTemplate,
  type Template,
} from '#engine/first-boot/rules/template.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { banner, card, emptyState } from '#kit/web/ui/elements.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { countMachines, removeTemplate, saveTemplate } from '#server/current/routes/first-boot.ts'
import { formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import { questionButton, renderRemoval } from '#server/pages/question.ts'
import { parseFields } from './template-check.ts'
import { hideTyped, readFields, type FieldTexts } from './template-form.ts'
import { renderEditor } from './template-editor.ts'
import { TEMPLATES_PATH, templatePath } from './template-path.ts'
import { renderPreviewTexts } from './template-preview.ts'

const t = PAGES.firstBoot

/** In bytes: files and texts are longer once they are escaped. */
const MAX_FORM_BYTES = 512 * 1024

export const TEMPLATE_PAGES = [
  pageAt(TEMPLATES_PATH, showAll),
  formAt(TEMPLATES_PATH, create, MAX_FORM_BYTES),
  pageAt(`${TEMPLATES_PATH}/:name`, show),
  formAt(`${TEMPLATES_PATH}/:name`, save, MAX_FORM_BYTES),
  removalAt(`${TEMPLATES_PATH}/:name/delete`, askRemoval, remove),
]

async function showAll(context: CurrentContext): Promise<Answer> {
  const listed = context.services.templates.list()
  const isNew = context.query.has('new')
  const mayCreate = context.site.mayOpen(context.event, TEMPLATES_PATH, 'POST')
  const isForm = mayCreate && (isNew || listed.length === 0)
  return await context.show({
    title: isNew ? t.create : t.title,
    section: TEMPLATES_PATH,
    ...(isNew ? { trail: TRAIL } : {}),
    actions:
      isForm || !mayCreate
        ? null
        : html`<a class="button primary" href="${TEMPLATES_PATH}?new=1">${t.create}</a>`,
    messages: context.message(),
    body: html`${isNew ? null : renderListCard(context, listed)}
    ${isForm ? renderEditor(context, null) : null} ${renderTokens(context)}`,
  })
}

const TRAIL = html`<a href="${TEMPLATES_PATH}">${t.title}</a>`

const renderListCard = (context: CurrentContext, listed: readonly NamedTemplate[]): Html =>
  card({
    title: t.list,
    id: 'templates',
    body: html`<p class="hint">${introduction()}</p>
      ${renderList(context, listed)}`,
  })

const placeholder = (name: string): Html => html`<code>{{${name}}}</code>`

const introduction = (): Html =>
  fillHtml(t.introduction, {
    name: placeholder('name'),
    mac: placeholder('mac'),
    serial: placeholder('serial'),
    label: placeholder('label.rack'),
    secret: placeholder('secret.…'),
  })

function renderList(context: CurrentContext, listed: readonly NamedTemplate[]): Content {
  if (listed.length === 0) return emptyState(t.empty.title, t.empty.text)
  const clock = context.clock()
  return html`<ul class="rows">
    ${listed.map(
      ({ name, updated_at }) =>
        html`<li>
          <span class="grow"
            ><a href="${templatePath(name)}"><bdi>${name}</bdi></a
            ><br />
            <span class="small dim"
              >${fillCount(t.machines, countMachines(context.site, name))} ·
              ${fillHtml(t.saved, { time: renderTime(updated_at, clock) })}</span
            ></span
          >
        </li>`,
    )}
  </ul>`
}

function renderTokens({ services }: CurrentContext): Html {
  const isRequired = services.config.current().pxe.tokens === 'require'
  return card({
    title: t.tokens.title,
    id: 'tokens',
    body: html`${banner(isRequired ? 'done' : 'needs-you', isRequired ? t.tokens.required : t.tokens.missing)}
      <p>${t.tokens.limits}</p>`,
  })
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

const TOO_MANY = fill(t.errors.tooMany, { count: MAX_TEMPLATES })

const errorsOf = (drafted: ReturnType<typeof parseFields>): FieldTexts =>
  drafted.ok ? {} : drafted.refusal

const asOf = ({ document }: FieldTexts) => (document === undefined ? {} : { as: 'text' })

function findNameMistake({ services }: CurrentContext, name: string): string | null {
  if (!TemplateNameSchema.safeParse(name).success) return t.errors.name
  return services.templates.find(name) === null ? null : fill(t.errors.taken, { name })
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
    text: error ?? fillCount(t.errors.refused, Object.keys(errors).length),
    typed: hideTyped(fields),
    errors,
    query,
  })

async function preview(
  context: CurrentContext,
  drafted: ReturnType<typeof parseFields>,
): Promise<Answer> {
  return await context.show({
    title: t.preview.title,
    section: TEMPLATES_PATH,
    trail: TRAIL,
    body: card({ title: t.preview.title, body: renderPreviewTexts(drafted) }),
  })
}

/** False: too many templates. */
async function store(
  { site, services, event }: CurrentContext,
  name: string,
  template: Template,
): Promise<boolean> {
  return (await saveTemplate(site, services.templates, event, { name, template })) !== null
}

function find({ services, event }: CurrentContext): NamedTemplate {
  const found = services.templates.find(getRouterParam(event, 'name', { decode: true }) ?? '')
  if (found === null) throw refuse(404, t.errors.missing)
  return found
}

async function show(context: CurrentContext): Promise<Answer> {
  const kept = find(context)
  const { name } = kept
  const count = countMachines(context.site, name)
  const isSaved = context.query.has('saved')
  return await context.show({
    title: fill(t.one, { name }),
    section: TEMPLATES_PATH,
    trail: TRAIL,
    heading: html`<bdi>${name}</bdi>`,
    count: fillCount(t.machines, count),
    messages: html`${context.message()}${isSaved ? banner('done', t.isSaved) : null}`,
    body: html`${renderEditor(context, kept)} ${renderTokens(context)}
    ${card({
      title: t.removal.title,
      id: 'removal',
      body:
        count > 0
          ? html`<p>${fillCount(t.removal.inUse, count)}</p>`
          : questionButton({
              action: `${templatePath(name)}/delete`,
              label: t.removal.button,
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
  return await context.show({
    title: t.removal.title,
    section: TEMPLATES_PATH,
    trail: TRAIL,
    body: renderRemoval({
      title: fillHtml(t.removal.question, { name: html`<bdi>${name}</bdi>` }),
      body: html`<p>${t.removal.consequence}</p>`,
      action: context.event.url.pathname,
      cancel: templatePath(name),
      button: t.removal.button,
      command: renderCurlBlock(context, [
        { method: 'DELETE', path: `/first-boot/${encodeURIComponent(name)}`, scope: 'admin' },
      ]),
    }),
  })
}

async function remove(context: CurrentContext): Promise<Answer> {
  const { name } = find(context)
  const { site, services, event } = context
  const count = countMachines(site, name)
  if (count > 0) {
    return context.goBack(templatePath(name), { error: fillCount(t.removal.inUse, count) })
  }
  await removeTemplate(site, services.templates, event, name)
  return context.goTo(TEMPLATES_PATH)
}
