/** /ui/people: who logs in with a name, their roles and passwords. */
import { getRouterParam } from 'h3'
import { MAX_SCOPE_CHARACTERS } from '../../../../fleet/access/rules/label-scope.ts'
import { MAX_PEOPLE, type Person } from '../../../../fleet/access/rules/person.ts'
import type { Accounts, PersonRefusal } from '../../../../fleet/access/accounts.ts'
import { accept, refuse, type Result } from '../../../../kit/foundation/result.ts'
import {
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
} from '../../../../kit/web/access/rules/new-password.ts'
import type { Answer } from '../../../../kit/web/answers/answers.ts'
import { refuse as refuseRequest } from '../../../../kit/web/answers/faults.ts'
import { ROLES, type Role } from '../../../../kit/web/answers/rules/rights.ts'
import { banner, card, emptyState } from '../../../../kit/web/ui/elements.ts'
import { selectField, textField } from '../../../../kit/web/ui/fields.ts'
import { address, fillHtml, html, type Content, type Html } from '../../../../kit/web/ui/html.ts'
import { renderTime } from '../../../../kit/web/ui/times.ts'
import { fill } from '../../../../kit/texts/text.ts'
import { formAt, pageAt, removalAt } from '../../../pages/context-routes.ts'
import { questionButton, renderRemoval } from '../../../pages/question.ts'
import { PAGES } from '../../../texts/texts.ts'
import { readScope, renderScope } from './scope-field.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { renderProviderPerson } from './provider-person.ts'

const t = PAGES.people
const { roles } = PAGES.account

const PEOPLE_PATH = '/ui/people'
const SETTINGS = '/ui/settings'

export const PEOPLE_PAGES = [
  pageAt(PEOPLE_PATH, show),
  formAt(PEOPLE_PATH, add),
  formAt(`${PEOPLE_PATH}/:id/role`, setRole),
  formAt(`${PEOPLE_PATH}/:id/password`, setPassword),
  formAt(`${PEOPLE_PATH}/:id/block`, (context: CurrentContext) => setBlocked(context, true)),
  formAt(`${PEOPLE_PATH}/:id/unblock`, (context: CurrentContext) => setBlocked(context, false)),
  removalAt(`${PEOPLE_PATH}/:id/remove`, askRemoval, remove),
]

async function show(context: CurrentContext): Promise<Answer> {
  const people = context.site.people?.store.list() ?? []
  const tokens = Map.groupBy(await context.site.tokens.list(), ({ owner }) => owner)
  return await context.show({
    title: t.title,
    section: SETTINGS,
    count: people.length,
    trail: html`<a href="${SETTINGS}">${PAGES.frame.titles.settings}</a>`,
    messages: html`${context.message()}${renderDone(context)}`,
    body: html`<div class="columns even">
      <div>
        ${
          people.length === 0
            ? emptyState(t.empty.title, t.empty.text)
            : card({
                body: html`<ul class="rows" aria-label="${t.list}">
                  ${people.map((person) => renderRow(context, person, tokens.get(person.id) ?? []))}
                </ul>`,
              })
        }
        ${people.length === 0 ? null : renderNameless(context)}
      </div>
      <div>${card({ title: t.add.title, id: 'add', body: renderForm(context) })}</div>
      ${renderLabels(context)}
    </div>`,
  })
}

/** The id of the labels that machines have, as suggestions for a scope. */
const LABELS = 'labels-in-use'
/** Suggestions that a page carries. */
const MAX_SUGGESTED = 200

const renderLabels = ({ site }: CurrentContext): Html =>
  html`<datalist id="${LABELS}">
    ${[...new Set(site.machines.peekAll().flatMap(({ labels }) => labels))]
      .toSorted()
      .slice(0, MAX_SUGGESTED)
      .map((label) => html`<option value="${label}"></option>`)}
  </datalist>`

function renderDone({ query }: CurrentContext): Content {
  const [done, name] = [query.get('done'), query.get('name')]
  const text = Object.entries(t.done).find(([key]) => key === done)?.[1]
  return text === undefined || name === null ? null : banner('done', fill(text, { name }))
}

function renderNameless({ services }: CurrentContext): Html {
  const wanted = services.config.current().people.nameless_login
  const text = wanted === 'always' ? t.administrator.always : t.administrator.off
  const setting = html`<code>[people] nameless_login</code>`
  return html`<p class="small dim">${text} ${fillHtml(t.administrator.setting, { setting })}</p>`
}

function renderRow(
  context: CurrentContext,
  person: Person,
  tokens: readonly { readonly name: string }[],
): Html {
  if (person.provider === null) return renderPerson(context, person)
  const names = tokens.map(({ name }) => name)
  return renderProviderPerson(context, person, {
    path: `${PEOPLE_PATH}/${person.id}`,
    tokens: names,
  })
}

function renderPerson(context: CurrentContext, person: Person): Html {
  const { id, name, role, labels, created_at } = person
  const path = `${PEOPLE_PATH}/${id}`
  const events = address('/ui/events', { person: name })
  return html`<li>
    <span class="grow"
      ><strong><bdi>${name}</bdi></strong>
      <span class="small dim"
        >${fillHtml(t.added, { time: renderTime(created_at, context.clock()) })},
        <a href="${events}">${t.events}</a></span
      >
      <form method="post" action="${path}/role" class="row">
        ${selectField({ name: 'role', label: fill(t.roleOf, { name }), value: role ?? '', options: role === null ? [NO_ROLE, ...ROLE_TITLES] : ROLE_TITLES })}
        ${textField({ name: 'labels', label: fill(t.scopeOf, { name }), value: renderScope(labels), placeholder: t.everything, list: LABELS, autocomplete: 'off' })}
        <button>${t.save}</button>
      </form>
      <details>
        <summary>${t.password.summary}</summary>
        <form method="post" action="${path}/password" class="narrow">
          ${renderPasswordField(fill(t.password.field, { name }), fill(t.password.hint, { count: MIN_PASSWORD_LENGTH, name }))}
          <button>${t.password.button}</button>
        </form>
      </details></span
    >
    ${questionButton({ action: `${path}/remove`, label: t.remove.button, tone: 'danger' })}
  </li>`
}

/** What each role permits, below the list of their titles: a browser cuts what is longer than the list. */
const ROLE_HINT = ROLES.map((role) => `${roles[role].title}: ${roles[role].text}.`).join(' ')

/** A role that cannot be read is none: saved unchanged it becomes no other. */
const NO_ROLE = { value: '', text: t.noRole }

const ROLE_TITLES = ROLES.map((role) => ({ value: role, text: roles[role].title }))

const renderPasswordField = (label: string, hint?: string): Html =>
  textField({
    name: 'password',
    label,
    type: 'password',
    autocomplete: 'new-password',
    required: true,
    minLength: MIN_PASSWORD_LENGTH,
    maxLength: MAX_PASSWORD_LENGTH,
    ...(hint === undefined ? {} : { hint }),
  })

function renderForm(context: CurrentContext): Html {
  const typed = context.notice()?.typed ?? {}
  return html`<form method="post" action="${PEOPLE_PATH}" class="narrow">
    ${textField({ name: 'name', label: t.add.name, hint: t.add.nameHint, required: true, maxLength: 64, value: typed['name'] ?? '', autocomplete: 'off' })}
    ${selectField({ name: 'role', label: t.role, value: typed['role'] ?? 'look', options: ROLE_TITLES, hint: ROLE_HINT })}
    ${textField({ name: 'labels', label: t.scope, hint: t.scopeHint, value: typed['labels'] ?? '', placeholder: t.everything, list: LABELS, autocomplete: 'off' })}
    ${renderPasswordField(t.add.password)}
    <button class="primary">${t.add.button}</button>
  </form>`
}

async function add(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const name = form.get('name') ?? ''
  const role = readRole(form)
  const typed = { name, role: role ?? '', labels: form.get('labels') ?? '' }
  if (role === null) return context.goBack(PEOPLE_PATH, { error: t.errors.role, typed })
  const password = form.get('password') ?? ''
  const added = await accountsOf(context).add(
    { name, role, password, labels: readLabels(form) },
    context.by(),
  )
  if (added.ok) return done(context, 'added', added.value)
  return context.goBack(PEOPLE_PATH, { error: describe(added.refusal), typed, anchor: 'add' })
}

async function setRole(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const role = readRole(form)
  if (role === null) return context.goBack(PEOPLE_PATH, { error: t.errors.role })
  // A form of before has no field for the scope, which stays then.
  const rights = { role, ...(form.has('labels') && { labels: readLabels(form) }) }
  const changed = await accountsOf(context).setRights(idOf(context), rights, context.by())
  return answerChange(context, 'role', changed)
}

async function setPassword(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const given = form.get('password') ?? ''
  const changed = await accountsOf(context).setPassword(idOf(context), given, context.by())
  return answerChange(context, 'password', changed)
}

async function askRemoval(context: CurrentContext): Promise<Answer> {
  const person = findPerson(context)
  if (!person.ok) return answerChange(context, 'removed', person)
  const { name, provider } = person.value
  return await context.show({
    title: fill(t.remove.title, { name }),
    section: SETTINGS,
    trail: html`<a href="${PEOPLE_PATH}">${t.title}</a>`,
    body: renderRemoval({
      title: fillHtml(t.remove.question, { name: html`<bdi>${name}</bdi>` }),
      body: html`<p>${t.remove.consequence}</p>
        ${provider === null ? null : html`<p>${t.provider.comesBack}</p>`}`,
      action: context.event.url.pathname,
      cancel: PEOPLE_PATH,
      button: t.remove.confirm,
    }),
  })
}

async function setBlocked(context: CurrentContext, isBlocked: boolean): Promise<Answer> {
  const changed = await accountsOf(context).setBlocked(idOf(context), isBlocked, context.by())
  return answerChange(context, isBlocked ? 'blocked' : 'unblocked', changed)
}

async function remove(context: CurrentContext): Promise<Answer> {
  const removed = await accountsOf(context).remove(idOf(context), context.by())
  return answerChange(context, 'removed', removed)
}

type Done = keyof typeof t.done

const done = (context: CurrentContext, what: Done, { name }: Person): Answer =>
  context.goTo(address(PEOPLE_PATH, { done: what, name }))

const answerChange = (
  context: CurrentContext,
  what: Done,
  changed: Result<Person, PersonRefusal>,
): Answer =>
  changed.ok
    ? done(context, what, changed.value)
    : context.goBack(PEOPLE_PATH, { error: describe(changed.refusal) })

const idOf = ({ event }: CurrentContext): string => getRouterParam(event, 'id') ?? ''

function findPerson(context: CurrentContext): Result<Person, PersonRefusal> {
  const person = context.site.people?.store.find(idOf(context)) ?? null
  return person === null ? refuse('unknown') : accept(person)
}

function accountsOf({ site }: CurrentContext): Accounts {
  if (site.accounts === null) throw refuseRequest(404, t.errors.unknown)
  return site.accounts
}

const readLabels = (form: URLSearchParams) => readScope(form.get('labels') ?? '')

const readRole = (form: URLSearchParams): Role | null =>
  ROLES.find((role) => role === form.get('role')) ?? null

const COUNTS: Partial<Readonly<Record<PersonRefusal, number>>> = {
  'too-many': MAX_PEOPLE,
  'scope-long': MAX_SCOPE_CHARACTERS,
  'too-short': MIN_PASSWORD_LENGTH,
  'too-long': MAX_PASSWORD_LENGTH,
}

const describe = (refusal: PersonRefusal): string =>
  fill(t.errors[refusal], { count: COUNTS[refusal] ?? 0 })
