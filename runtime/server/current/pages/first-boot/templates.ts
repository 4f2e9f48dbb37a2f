/** /ui/first-boot: the first-boot templates, and the page of each with its form. */
import type { Answer } from '../../../../kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import {
  MAX_TEMPLATES,
  TemplateNameSchema,
  type NamedTemplate,
  type Template,
} from '../../../../engine/first-boot/rules/template.ts'
import { renderFieldErrors } from '../../../../kit/foundation/field-error.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill, fillCount } from '../../../../kit/texts/text.ts'
import { refuse } from '../../../../kit/web/answers/faults.ts'
import { banner, card, emptyState } from '../../../../kit/web/ui/elements.ts'
import { textField } from '../../../../kit/web/ui/fields.ts'
import { attributes, fillHtml, html, type Content, type Html } from '../../../../kit/web/ui/html.ts'
import { renderTime } from '../../../../kit/web/ui/times.ts'
import { countMachines, removeTemplate, saveTemplate } from '../../routes/first-boot.ts'
import { formAt, pageAt, removalAt } from '../../../pages/context-routes.ts'
import { MACHINES_TRAIL } from '../../../pages/machines/machines-list.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { questionButton, renderRemoval } from '../../../pages/question.ts'
import { TEMPLATES_PATH, templatePath } from './template-path.ts'
import {
  EMPTY_TEXTS,
  hideTyped,
  parseTexts,
  readTexts,
  renderFields,
  textsOf,
  type TemplateTexts,
} from './template-form.ts'

const t = PAGES.firstBoot

export const TEMPLATE_PAGES = [
  pageAt(TEMPLATES_PATH, showAll),
  formAt(TEMPLATES_PATH, create),
  pageAt(`${TEMPLATES_PATH}/:name`, show),
  formAt(`${TEMPLATES_PATH}/:name`, save),
  removalAt(`${TEMPLATES_PATH}/:name/delete`, askRemoval, remove),
]

async function showAll(context: CurrentContext): Promise<Answer> {
  const { templates } = context.services
  const listed = templates.list()
  const typed = typedIn(context)
  return await context.show({
    title: t.title,
    section: '/ui/machines',
    trail: MACHINES_TRAIL,
    messages: context.message(),
    body: html`${card({
      title: t.list,
      id: 'templates',
      body: html`<p class="hint">${introduction()}</p>
        ${renderList(context, listed)}`,
    })}
    ${card({
      title: t.create,
      id: 'create',
      body: html`<details ${attributes({ open: listed.length === 0 || typed.has('name') })}>
        <summary>${t.create}</summary>
        <form method="post" action="${TEMPLATES_PATH}">
          ${textField({ name: 'name', label: t.form.name, value: typed.get('name') ?? '', required: true, maxLength: 64, mono: true, hint: t.form.nameHint })}
          ${renderFields(readTexts(typed, EMPTY_TEXTS))}
          <button class="primary">${t.createButton}</button>
        </form>
      </details>`,
    })}
    ${renderTokens(context)}`,
  })
}

/** A placeholder in the notation of templates. */
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

/** What tokens are good for, and what they do not stop. */
function renderTokens({ services }: CurrentContext): Html {
  const isRequired = services.config.current().pxe.tokens === 'require'
  return card({
    title: t.tokens.title,
    id: 'tokens',
    body: html`${banner(isRequired ? 'done' : 'needs-you', isRequired ? t.tokens.required : t.tokens.missing)}
      <p>${t.tokens.limits}</p>`,
  })
}

/** What was typed and refused. */
const typedIn = ({ notice }: CurrentContext): URLSearchParams =>
  new URLSearchParams(notice()?.typed)

async function create(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const name = (form.get('name') ?? '').trim()
  const texts = readTexts(form, EMPTY_TEXTS)
  const fail = (error: string) =>
    context.goBack(TEMPLATES_PATH, { error, typed: { name, ...hideTyped(texts) } })
  if (!TemplateNameSchema.safeParse(name).success) return fail(t.errors.name)
  if (context.services.templates.find(name) !== null) return fail(fill(t.errors.taken, { name }))
  const refusal = await store(context, name, texts)
  return refusal === null ? context.goTo(templatePath(name)) : fail(refusal)
}

/** Null: it is kept. */
async function store(
  { site, services, event }: CurrentContext,
  name: string,
  texts: TemplateTexts,
): Promise<string | null> {
  const parsed = parseTexts(texts)
  if (!parsed.ok) return fill(t.errors.refused, { reason: renderFieldErrors(parsed.refusal) })
  const template: Template = parsed.value
  const saved = await saveTemplate(site, services.templates, event, { name, template })
  return saved === null ? fill(t.errors.tooMany, { count: MAX_TEMPLATES }) : null
}

function find({ services, event }: CurrentContext): NamedTemplate {
  const found = services.templates.find(getRouterParam(event, 'name', { decode: true }) ?? '')
  if (found === null) throw refuse(404, t.errors.missing)
  return found
}

async function show(context: CurrentContext): Promise<Answer> {
  const { name, template } = find(context)
  const count = countMachines(context.site, name)
  const path = templatePath(name)
  const isSaved = context.query.has('saved')
  return await context.show({
    title: fill(t.one, { name }),
    section: '/ui/machines',
    trail: html`<a href="${TEMPLATES_PATH}">${t.title}</a>`,
    heading: html`<bdi>${name}</bdi>`,
    messages: html`${context.message()}${isSaved ? banner('done', t.isSaved) : null}`,
    body: html`${card({
      title: fillCount(t.machines, count),
      id: 'template',
      body: html`<p class="hint">${introduction()}</p>
        <form method="post" action="${path}">
          ${renderFields(readTexts(typedIn(context), textsOf(template)))}
          <button class="primary">${t.saveButton}</button>
        </form>`,
    })}
    ${renderTokens(context)}
    ${card({
      title: t.removal.title,
      id: 'removal',
      body:
        count > 0
          ? html`<p>${fillCount(t.removal.inUse, count)}</p>`
          : questionButton({ action: `${path}/delete`, label: t.removal.button, tone: 'danger' }),
    })}`,
  })
}

async function save(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { name, template } = find(context)
  const texts = readTexts(form, textsOf(template))
  const refusal = await store(context, name, texts)
  return refusal === null
    ? context.goTo(`${templatePath(name)}?saved=1`)
    : context.goBack(templatePath(name), { error: refusal, typed: hideTyped(texts) })
}

async function askRemoval(context: CurrentContext): Promise<Answer> {
  const { name } = find(context)
  return await context.show({
    title: t.removal.title,
    section: '/ui/machines',
    trail: html`<a href="${TEMPLATES_PATH}">${t.title}</a>`,
    body: renderRemoval({
      title: fillHtml(t.removal.question, { name: html`<bdi>${name}</bdi>` }),
      body: html`<p>${t.removal.consequence}</p>`,
      action: context.event.url.pathname,
      cancel: templatePath(name),
      button: t.removal.button,
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
