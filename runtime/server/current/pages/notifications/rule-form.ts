/** /ui/notifications/{id}/rules/{rule}: which events a receiver hears of. */
import { getRouterParam } from 'h3'
import {
  describeRule,
  RuleSchema,
  type Receiver,
  type NotifyRule,
} from '#fleet/notify/rules/receiver.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { attributes, html, type Html } from '#kit/web/ui/html.ts'
import { card, tag } from '#kit/web/ui/elements.ts'
import { postButton, textField } from '#kit/web/ui/fields.ts'
import { fill } from '#kit/foundation/text.ts'
import { buttonAt, formAt, pageAt } from '#server/pages/context-routes.ts'
import { listSearchMistakes } from '../machines/fleet-query.ts'
import type { CurrentContext } from '../view/page-context.ts'
import {
  type FieldErrors,
  describeRefusal,
  findReceiver,
  goDone,
  pathOfReceiver,
  trailTo,
  NOTIFICATIONS_PATH,
} from './receiver-form.ts'
import {
  EVENT_GROUP_NAMES,
  EVENT_GROUPS,
  type EventGroupName,
} from '#fleet/notify/rules/message.ts'
const PATH = `${NOTIFICATIONS_PATH}/:id/rules/:rule`

/** A rule that is added has this in the place of an id. */
const NEW = 'new'

export const RULE_PAGES = [
  pageAt(PATH, 'admin', show),
  formAt(PATH, 'admin', save),
  buttonAt(`${PATH}/remove`, 'admin', remove),
]

const RULE_TEXTS = {
  title: 'What it hears of',
  none: 'No rule: it hears of nothing.',
  add: 'Add a rule',
  change: 'Change',
  remove: 'Remove',
  newTitle: 'Add a rule for {name}',
  editTitle: 'Change a rule of {name}',
  events: 'Events',
  search: 'Only of machines that match',
  searchHint:
    'A search as on the machines page, for example label:rack-3. Leave empty for everything.',
  person: 'Only what this person did or armed',
  personHint: 'A name, or administrator. Leave empty for everybody.',
  save: 'Save rule',
} as const

export const renderRules = (receiver: Receiver): Html =>
  html`${
      receiver.rules.length === 0
        ? html`<p class="dim">${RULE_TEXTS.none}</p>`
        : html`<ul class="rows" aria-label="${RULE_TEXTS.title}">
            ${receiver.rules.map((rule) => renderRule(receiver, rule))}
          </ul>`
    } <a class="button" href="${rulePath(receiver, NEW)}">${RULE_TEXTS.add}</a>`

const rulePath = ({ id }: Receiver, rule: string): string => `${pathOfReceiver(id)}/rules/${rule}`

function renderRule(receiver: Receiver, rule: NotifyRule): Html {
  const path = rulePath(receiver, rule.id)
  const words = describeRule({ ...rule, events: [] }).replace(/^, /, '')
  return html`<li>
    <span class="grow"
      >${rule.events.map((name) => html`${tag(EVENT_GROUPS[name].title)} `)}
      <span class="small dim">${words}</span></span
    >
    <a class="button" href="${path}">${RULE_TEXTS.change}</a>
    ${postButton({ action: `${path}/remove`, label: RULE_TEXTS.remove })}
  </li>`
}

async function show(context: CurrentContext): Promise<Answer> {
  const receiver = findReceiver(context)
  const id = ruleIdOf(context)
  const rule = receiver.rules.find((one) => one.id === id) ?? null
  if (rule === null && id !== NEW) return context.goTo(pathOfReceiver(receiver.id))
  const { name } = receiver
  const title = fill(rule === null ? RULE_TEXTS.newTitle : RULE_TEXTS.editTitle, {
    name,
  })
  return await context.show({
    title,
    section: '/ui/settings',
    trail: trailTo(receiver),
    body: card({ body: renderForm(context, rulePath(receiver, id), rule) }),
  })
}

function renderForm(context: CurrentContext, action: string, rule: NotifyRule | null): Html {
  const { typed = ruleValues(rule), errors = {} } = context.notice() ?? {}
  const field = (name: 'search' | 'person') => ({
    name,
    label: RULE_TEXTS[name],
    hint: RULE_TEXTS[`${name}Hint`],
    value: typed[name] ?? '',
    error: errors[name] ?? null,
  })
  const selected = new Set((typed['events'] ?? '').split(' '))
  const { events: error = null } = errors
  return html`<form method="post" action="${action}" class="narrow">
    <fieldset class="stack">
      <legend>${RULE_TEXTS.events}</legend>
      ${EVENT_GROUP_NAMES.map((name) => renderChoice(name, selected.has(name)))}
      ${error === null ? null : html`<p class="error">${error}</p>`}
    </fieldset>
    ${textField({ ...field('search'), maxLength: 500 })}
    ${textField({ ...field('person'), maxLength: 64 })}
    <button class="primary">${RULE_TEXTS.save}</button>
  </form>`
}

const ruleValues = (rule: NotifyRule | null): Readonly<Record<string, string>> =>
  rule === null ? {} : { events: rule.events.join(' '), search: rule.search, person: rule.person }

const renderChoice = (name: EventGroupName, checked: boolean): Html =>
  html`<label class="check"
    ><input${attributes({ type: 'checkbox', name: 'events', value: name, checked })} />
    <span>${EVENT_GROUPS[name].title}</span></label
  >`

async function save(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const receiver = findReceiver(context)
  const id = ruleIdOf(context)
  const path = rulePath(receiver, id)
  const read = readRule(form)
  if (!read.ok) {
    const typed = { ...Object.fromEntries(form), events: form.getAll('events').join(' ') }
    return context.goBack(path, {
      error: 'Correct the fields that are marked.',
      errors: read.refusal,
      typed,
    })
  }
  const { edits } = context.services.notify
  const isNew = id === NEW
  const saved = await edits.saveRule(receiver.id, isNew ? null : id, read.value, context.by())
  if (!saved.ok) return context.goBack(path, { error: describeRefusal(saved.refusal) })
  return goDone(context, receiver, 'saved')
}

function readRule(form: URLSearchParams): Result<Omit<NotifyRule, 'id'>, FieldErrors> {
  const text = (name: string) => form.get(name)?.trim() ?? ''
  const [mistake] = listSearchMistakes(text('search'))
  const read = RuleSchema.omit({ id: true }).safeParse({
    events: form.getAll('events'),
    search: text('search'),
    person: text('person'),
  })
  if (read.success && mistake === undefined) return accept(read.data)
  const wrong = new Set(read.error?.issues.map(({ path }) => path[0]))
  if (mistake !== undefined) wrong.add('search')
  const texts = {
    events: 'Select at least one kind of event.',
    search: `This search is not understood: ${mistake?.term ?? ''}`,
    person: 'Enter a name of at most 64 characters.',
  }
  return refuse(Object.fromEntries(Object.entries(texts).filter(([name]) => wrong.has(name))))
}

async function remove(context: CurrentContext): Promise<Answer> {
  const receiver = findReceiver(context)
  const { edits } = context.services.notify
  const removed = await edits.removeRule(receiver.id, ruleIdOf(context), context.by())
  if (removed.ok) return goDone(context, receiver, 'saved')
  return context.goBack(pathOfReceiver(receiver.id), { error: describeRefusal(removed.refusal) })
}

const ruleIdOf = ({ event }: CurrentContext): string => getRouterParam(event, 'rule') ?? ''
