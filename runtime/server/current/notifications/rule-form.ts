/** /ui/notifications/{id}/rules/{rule}: which events are sent to a receiver. */
import { getRouterParam } from 'h3'
import {
  describeRule,
  type NotifyRule,
  type Receiver,
  RuleSchema,
} from '#fleet/notify/rules/channel.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { attributes, html, type Html } from '#kit/web/ui/html.ts'
import { card, tag } from '#kit/web/ui/elements.ts'
import { postButton } from '#kit/web/ui/fields.ts'
import { fill } from '#kit/foundation/text.ts'
import { buttonAt, formAt, pageAt } from '#server/pages/context-routes.ts'
import { renderFormFields, type FormErrors, type FormField } from '#server/pages/form-fields.ts'
import { listSearchMistakes } from '../machines/fleet-query.ts'
import type { CurrentContext } from '../view/page-context.ts'
import {
  REFUSALS,
  WRONG_FIELDS,
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

export const renderRules = (receiver: Receiver): Html =>
  html`${
      receiver.rules.length === 0
        ? html`<p class="dim">No rules: nothing is sent.</p>`
        : html`<ul class="rows" aria-label="Rules">
            ${receiver.rules.map((rule) => renderRule(receiver, rule))}
          </ul>`
    } <a class="button" href="${rulePath(receiver, NEW)}">Add a rule</a>`

const rulePath = ({ id }: Receiver, rule: string): string => `${pathOfReceiver(id)}/rules/${rule}`

function renderRule(receiver: Receiver, rule: NotifyRule): Html {
  const path = rulePath(receiver, rule.id)
  const words = describeRule({ ...rule, events: [] }).replace(/^, /, '')
  return html`<li>
    <span class="grow"
      >${rule.events.map((name) => html`${tag(EVENT_GROUPS[name].title)} `)}
      <span class="small dim">${words}</span></span
    >
    <a class="button" href="${path}">Change</a>
    ${postButton({ action: `${path}/remove`, label: 'Remove' })}
  </li>`
}

async function show(context: CurrentContext): Promise<Answer> {
  const receiver = findReceiver(context)
  const id = ruleIdOf(context)
  const rule = receiver.rules.find((one) => one.id === id) ?? null
  if (rule === null && id !== NEW) return context.goTo(pathOfReceiver(receiver.id))
  const { name } = receiver
  const title = fill(rule === null ? 'Add a rule for {name}' : 'Change a rule of {name}', { name })
  return await context.show({
    title,
    trail: trailTo(receiver),
    body: card({ body: renderForm(context, rulePath(receiver, id), rule) }),
  })
}

function renderForm(context: CurrentContext, action: string, rule: NotifyRule | null): Html {
  const notice = context.notice()
  const selected = new Set(notice?.typed['events']?.split(' ') ?? rule?.events)
  const error = notice?.errors['events'] ?? null
  return html`<form method="post" action="${action}" class="narrow">
    <fieldset class="stack">
      <legend>Events</legend>
      ${EVENT_GROUP_NAMES.map((name) => renderChoice(name, selected.has(name)))}
      ${error === null ? null : html`<p class="error">${error}</p>`}
    </fieldset>
    ${renderFormFields(FIELDS, rule === null ? {} : { search: rule.search, person: rule.person }, notice)}
    <button class="primary">Save rule</button>
  </form>`
}

const FIELDS = {
  search: {
    label: 'Only machines that match',
    hint: 'A search of machines, such as label:rack-3. Leave empty for everything.',
    maxLength: 500,
  },
  person: {
    label: 'Only actions of this person',
    hint: 'A name, or administrator. Leave empty for everybody.',
    maxLength: 64,
  },
} satisfies Readonly<Record<string, FormField>>

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
    return context.goBack(path, { error: WRONG_FIELDS, errors: read.refusal, typed })
  }
  const { edits } = context.services.notify
  const isNew = id === NEW
  const saved = await edits.saveRule(receiver.id, isNew ? null : id, read.value, context.by())
  if (!saved.ok) return context.goBack(path, { error: REFUSALS[saved.refusal] })
  return goDone(context, receiver, 'saved')
}

function readRule(form: URLSearchParams): Result<Omit<NotifyRule, 'id'>, FormErrors> {
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
    search: `Invalid search: ${mistake?.term ?? ''}`,
    person: 'Enter a name of at most 64 characters.',
  }
  return refuse(Object.fromEntries(Object.entries(texts).filter(([name]) => wrong.has(name))))
}

async function remove(context: CurrentContext): Promise<Answer> {
  const receiver = findReceiver(context)
  const { edits } = context.services.notify
  const removed = await edits.removeRule(receiver.id, ruleIdOf(context), context.by())
  if (removed.ok) return goDone(context, receiver, 'saved')
  return context.goBack(pathOfReceiver(receiver.id), { error: REFUSALS[removed.refusal] })
}

const ruleIdOf = ({ event }: CurrentContext): string => getRouterParam(event, 'rule') ?? ''
