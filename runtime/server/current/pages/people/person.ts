/** /ui/people/{id}: what one person may do, their password, and how to keep them out. */
import type { Person } from '#fleet/access/rules/person.ts'
import { refuse } from '#kit/foundation/result.ts'
import { MIN_PASSWORD_LENGTH } from '#kit/web/access/rules/new-password.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { card, factList } from '#kit/web/ui/elements.ts'
import { postButton } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { fill } from '#kit/texts/text.ts'
import { formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import { questionButton, renderRemoval } from '#server/pages/question.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { readLabels, readRole, renderPasswordField, renderRightsFields } from './person-fields.ts'
import { accountsOf, answerChange, findPerson, goBack, idOf } from './person-path.ts'
import { pathOfPerson, PEOPLE_PATH } from './person-path.ts'
import { renderLastLogin, renderState } from './person-row.ts'
import { describeRights, describeTokens } from './provider-person.ts'
import { renderScope } from './scope-field.ts'

const t = PAGES.people
const ONE = `${PEOPLE_PATH}/:id`
const SETTINGS = '/ui/settings'

export const PERSON_PAGES = [
  pageAt(ONE, show),
  formAt(`${ONE}/role`, setRole),
  formAt(`${ONE}/password`, setPassword),
  formAt(`${ONE}/block`, (context: CurrentContext) => setBlocked(context, true)),
  formAt(`${ONE}/unblock`, (context: CurrentContext) => setBlocked(context, false)),
  removalAt(`${ONE}/remove`, askRemoval, remove),
]

const TRAIL = html`<a href="${PEOPLE_PATH}">${t.title}</a>`

async function show(context: CurrentContext): Promise<Answer> {
  const person = findPerson(context)
  if (person === null) return answerChange(context, 'removed', refuse('unknown'))
  const owned = (await context.site.tokens.list()).filter(({ owner }) => owner === person.id)
  const tokens = owned.map(({ name }) => name)
  return await context.show({
    title: person.name,
    section: SETTINGS,
    trail: TRAIL,
    messages: context.message(),
    body: html`<div class="columns even">
      <div>${card({ body: renderFacts(context, person, tokens) })}</div>
      <div>${person.provider === null ? renderForms(context, person) : null}</div>
    </div>`,
  })
}

function renderFacts(context: CurrentContext, person: Person, tokens: readonly string[]): Html {
  const { id, name, provider, blocked_at } = person
  const path = pathOfPerson(id)
  const [what, label] =
    blocked_at === null
      ? (['block', t.provider.block] as const)
      : (['unblock', t.provider.unblock] as const)
  const facts: (readonly [string, Content])[] = [
    [t.columns.state, renderState(person)],
    ...(provider === null ? [] : [[t.role, describeRights(person)] as const]),
    [t.columns.seen, renderLastLogin(context, person)],
    [t.columns.added, renderTime(person.created_at, context.clock())],
    ...(tokens.length === 0 ? [] : [[t.columns.tokens, describeTokens(person, tokens)] as const]),
  ]
  return html`${factList(facts)}
    <p><a href="${address('/ui/events', { person: name })}">${fill(t.events, { name })}</a></p>
    <div class="row">
      ${provider === null ? null : postButton({ action: `${path}/${what}`, label })}
      ${questionButton({ action: `${path}/remove`, label: t.remove.button, tone: 'danger' })}
    </div>`
}

function renderForms(context: CurrentContext, { id, name, role, labels }: Person): Html {
  const path = pathOfPerson(id)
  const hint = fill(t.password.hint, { count: MIN_PASSWORD_LENGTH, name })
  return html`${card({
    title: t.rights,
    body: html`<form method="post" action="${path}/role" class="narrow">
      ${renderRightsFields(context, { role: role ?? '', labels: renderScope(labels) })}
      <button class="primary">${t.save}</button>
    </form>`,
  })}
  ${card({
    title: t.password.title,
    body: html`<form method="post" action="${path}/password" class="narrow">
      ${renderPasswordField(t.password.field, hint)}
      <button>${t.password.button}</button>
    </form>`,
  })}`
}

async function setRole(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const role = readRole(form)
  if (role === null) return goBack(context, t.errors.role)
  // Without the field, the scope stays.
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
  if (person === null) return answerChange(context, 'removed', refuse('unknown'))
  const { id, name, provider } = person
  return await context.show({
    title: fill(t.remove.title, { name }),
    section: SETTINGS,
    trail: TRAIL,
    body: renderRemoval({
      title: fillHtml(t.remove.question, { name: html`<bdi>${name}</bdi>` }),
      body: html`<p>${t.remove.consequence}</p>
        ${provider === null ? null : html`<p>${t.provider.comesBack}</p>`}`,
      action: context.event.url.pathname,
      cancel: pathOfPerson(id),
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
