/** /ui/people: who logs in with a name, and how somebody is added. */
import { MIN_PASSWORD_LENGTH } from '#kit/web/access/rules/new-password.ts'
import type { Person } from '#fleet/access/rules/person.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { card, emptyState } from '#kit/web/ui/elements.ts'
import { textField } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Html } from '#kit/web/ui/html.ts'
import { ACTIONS, numberColumn, renderTable } from '#kit/web/ui/tables.ts'
import { fill } from '#kit/texts/text.ts'
import { formAt, pageAt } from '#server/pages/context-routes.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { PERSON_PAGES } from './person.ts'
import { readLabels, readRole, renderPasswordField, renderRightsFields } from './person-fields.ts'
import { accountsOf, describeRefusal, goDone, PEOPLE_PATH, renderDone } from './person-path.ts'
import { renderPersonRow } from './person-row.ts'

const t = PAGES.people

const SETTINGS = '/ui/settings'
const ADD = `${PEOPLE_PATH}/add`

export const PEOPLE_PAGES = [
  pageAt(PEOPLE_PATH, show),
  pageAt(ADD, showForm),
  formAt(PEOPLE_PATH, add),
  ...PERSON_PAGES,
]

async function show(context: CurrentContext): Promise<Answer> {
  const people = context.site.people?.store.list() ?? []
  return await context.show({
    title: t.title,
    section: SETTINGS,
    count: people.length,
    trail: html`<a href="${SETTINGS}">${PAGES.frame.titles.settings}</a>`,
    actions: html`<a class="button primary" href="${ADD}">${t.add.title}</a>`,
    messages: html`${context.message()}${renderDone(context)}`,
    body:
      people.length === 0
        ? emptyState(t.empty.title, t.empty.text)
        : html`${await renderPeople(context, people)}${renderNameless(context)}`,
  })
}

async function renderPeople(context: CurrentContext, people: readonly Person[]): Promise<Html> {
  const owned = Map.groupBy(await context.site.tokens.list(), ({ owner }) => owner)
  const { by, seen, tokens, state } = t.columns
  return renderTable({
    caption: t.list,
    columns: [t.columns.name, t.role, t.scope, by, seen, numberColumn(tokens), state, ACTIONS],
    rows: people.map((person) =>
      renderPersonRow(context, person, owned.get(person.id)?.length ?? 0),
    ),
  })
}

function renderNameless({ services }: CurrentContext): Html {
  const wanted = services.config.current().people.nameless_login
  const text = wanted === 'always' ? t.administrator.always : t.administrator.off
  const setting = html`<code>[people] nameless_login</code>`
  return html`<p class="small dim">${text} ${fillHtml(t.administrator.setting, { setting })}</p>`
}

async function showForm(context: CurrentContext): Promise<Answer> {
  const typed = context.notice()?.typed ?? {}
  const rights = { role: typed['role'] ?? 'look', labels: typed['labels'] ?? '' }
  return await context.show({
    title: t.add.title,
    section: SETTINGS,
    trail: html`<a href="${PEOPLE_PATH}">${t.title}</a>`,
    messages: context.message(),
    body: card({
      body: html`<form method="post" action="${PEOPLE_PATH}" class="narrow">
        ${textField({ name: 'name', label: t.add.name, hint: t.add.nameHint, required: true, maxLength: 64, value: typed['name'] ?? '', autocomplete: 'off' })}
        ${renderRightsFields(context, rights)}
        ${renderPasswordField(t.add.password, fill(t.add.passwordHint, { count: MIN_PASSWORD_LENGTH }))}
        <button class="primary">${t.add.button}</button>
      </form>`,
    }),
  })
}

async function add(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const name = form.get('name') ?? ''
  const role = readRole(form)
  const typed = { name, role: role ?? '', labels: form.get('labels') ?? '' }
  if (role === null) return context.goBack(ADD, { error: t.errors.role, typed })
  const password = form.get('password') ?? ''
  const added = await accountsOf(context).add(
    { name, role, password, labels: readLabels(form) },
    context.by(),
  )
  if (added.ok) return goDone(context, 'added', added.value)
  return context.goBack(ADD, { error: describeRefusal(added.refusal), typed })
}
