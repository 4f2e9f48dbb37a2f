/** /ui/people: who logs in with a name, and how somebody is added. */
import { ROLE_TEXTS } from '#kit/web/ui/who.ts'
import { MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH } from '#kit/web/access/rules/login-throttle.ts'
import { type Person, MAX_SCOPE_CHARACTERS, MAX_PEOPLE } from '#fleet/access/rules/person.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { badge, banner, card, emptyState, factList, tag } from '#kit/web/ui/elements.ts'
import { checkField, textField, postButton, selectField } from '#kit/web/ui/fields.ts'
import { html, type Html, address, type Content } from '#kit/web/ui/html.ts'
import { ACTIONS, numberColumn, renderTable } from '#kit/web/ui/tables.ts'
import { fill } from '#kit/foundation/text.ts'
import { formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { refuse, type Result } from '#kit/foundation/result.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { questionButton, showRemoval } from '#server/pages/question.ts'
import { ROLES, type Role, type Reach } from '#kit/web/answers/rules/rights.ts'
import { LabelSchema } from '#fleet/machine/rules/label.ts'
import { getRouterParam } from 'h3'
import type { Accounts, PersonRefusal } from '#fleet/access/accounts.ts'
import { refuse as refuseRequest } from '#kit/web/answers/faults.ts'
import { PROVIDER_PAGES, renderProviderLink } from './provider-page.ts'

function renderPersonRow(context: CurrentContext, person: Person, tokens: number): Html {
  const { id, name, role, provider } = person
  return html`<tr>
    <th scope="row"><bdi>${name}</bdi></th>
    <td data-label="Role">${role === null ? 'No role' : ROLE_TEXTS[role].title}</td>
    <td data-label="Scope">${renderLabels(person)}</td>
    <td data-label="Logs in with">${provider === null ? 'password' : hostOf(person)}</td>
    <td class="nowrap" data-label="Last login">${renderLastLogin(context, person)}</td>
    <td class="number" data-label="Tokens">${tokens}</td>
    <td data-label="State">${renderState(person)}</td>
    <td>
      <a class="button" href="${pathOfPerson(id)}" aria-label="Change ${name}">Change</a>
    </td>
  </tr>`
}

/** Administrators have no scope, whatever is stored. */
function renderLabels({ role, labels }: Person): Content {
  if (role === 'administrate' || labels === null) return 'all machines'
  return labels.length === 0 ? 'none' : labels.map((label) => html`${tag(label)} `)
}

const renderState = ({ role, blocked_at }: Person): Html =>
  blocked_at !== null
    ? badge('failed', 'Blocked')
    : role === null
      ? badge('needs-you', 'No role')
      : badge('done', 'Active')

/** Logins with a password have been recorded only since a later release. */
const renderLastLogin = (context: CurrentContext, { seen_at, provider }: Person): Content =>
  renderTime(seen_at, context.clock(), provider === null ? 'none recorded' : 'never')

// What the pages of people share: their addresses, where a form leads, and why it was refused.

const PEOPLE_PATH = '/ui/people'

const pathOfPerson = (id: string): string => `${PEOPLE_PATH}/${id}`

const idOf = ({ event }: CurrentContext): string => getRouterParam(event, 'id') ?? ''

const findPerson = (context: CurrentContext): Person | null =>
  context.site.people?.store.find(idOf(context)) ?? null

const REFUSALS: Readonly<Record<PersonRefusal | 'role', string>> = {
  'name-shape':
    'Enter a name of lowercase letters, digits and . _ - + @, of at most 64 characters.',
  'name-reserved': 'That name is reserved: use another one.',
  'name-taken': 'That name is in use.',
  'too-many': `There are ${MAX_PEOPLE} people already.`,
  'too-short': `Enter at least ${MIN_PASSWORD_LENGTH} characters.`,
  'too-long': `Enter at most ${MAX_PASSWORD_LENGTH} characters.`,
  'scope-label': 'Labels have letters, digits, spaces and . _ - only.',
  'scope-long': `Use fewer or shorter labels: at most ${MAX_SCOPE_CHARACTERS} characters, and each label counts three more.`,
  'control-characters': 'The password may not contain control characters.',
  differs: 'The two passwords are different.',
  unknown: 'That person was removed already.',
  'of-provider': 'Their provider sets their password and role.',
  'has-password': 'This person has a password here: remove them instead.',
  role: 'Select one of the roles.',
}

function accountsOf({ site }: CurrentContext): Accounts {
  if (site.accounts === null) throw refuseRequest(404, REFUSALS.unknown)
  return site.accounts
}

const PEOPLE_DONE = {
  added: '{name} was added.',
  role: 'Role and scope of {name} saved. All of their sessions have ended.',
  password: 'Password of {name} changed. All of their sessions have ended.',
  removed: '{name} was removed.',
  blocked: '{name} is blocked. Their sessions have ended and their tokens are refused.',
  unblocked: '{name} may log in again. Until then they have no role.',
} as const

type Done = keyof typeof PEOPLE_DONE

const goDone = (context: CurrentContext, what: Done, { name }: Person): Answer =>
  context.goTo(address(PEOPLE_PATH, { done: what, name }))

/** To the list, or back to the person with the refusal. */
function answerChange(
  context: CurrentContext,
  what: Done,
  changed: Result<Person, PersonRefusal>,
): Answer {
  if (changed.ok) return goDone(context, what, changed.value)
  return goBack(context, REFUSALS[changed.refusal])
}

const goBack = (context: CurrentContext, error: string): Answer =>
  context.goBack(findPerson(context) === null ? PEOPLE_PATH : pathOfPerson(idOf(context)), {
    error,
  })

function renderDone({ query }: CurrentContext): Content {
  const [done, name] = [query.get('done'), query.get('name')]
  const text = Object.entries(PEOPLE_DONE).find(([key]) => key === done)?.[1]
  return text === undefined || name === null ? null : banner('done', fill(text, { name }))
}

// What is said of somebody whom a provider lets in: their role, their scope, their tokens.

/** Empty: no provider. */
const hostOf = ({ provider }: Person): string => URL.parse(provider?.issuer ?? '')?.host ?? ''

const describeRights = (person: Person): string => `${describeRole(person)}${describeScope(person)}`

function describeRole(person: Person): string {
  const { role } = person
  return role === null
    ? `No role from ${hostOf(person)}.`
    : `${ROLE_TEXTS[role].title}, from ${hostOf(person)}.`
}

/** Administrators have no scope, whatever their groups say. */
function describeScope({ role, labels }: Person): string {
  if (labels === null || role === null || role === 'administrate') return ''
  const named = labels.length === 0 ? 'none' : labels.join(', ')
  return ` Machines: ${named}.`
}

/** Tokens work on while nobody is logged in, so they are named. */
function describeTokens({ role }: Person, tokens: readonly string[]): string {
  const when =
    role === null ? 'refused at the moment' : 'valid with that role, also without a login'
  return `${tokens.join(', ')}, ${when}`
}

const LABELS = 'labels-in-use'
const MAX_SUGGESTED = 200

/** Below the list, because browsers cut longer options. */
const ROLE_HINT = ROLES.map(
  (role) => html`<strong>${ROLE_TEXTS[role].title}</strong>: ${ROLE_TEXTS[role].text}.<br />`,
)

const ROLE_TITLES = ROLES.map((role) => ({ value: role, text: ROLE_TEXTS[role].title }))

/** For an unreadable role: saved unchanged, it becomes no other. */
const NO_ROLE = { value: '', text: 'No role' }

/** `role` empty: none; `labels`: the text of the scope. */
const renderRightsFields = (
  { site }: CurrentContext,
  { role, labels }: { readonly role: string; readonly labels: string },
): Html =>
  html`${selectField({ name: 'role', label: 'Role', value: role, options: role === '' ? [NO_ROLE, ...ROLE_TITLES] : ROLE_TITLES, hint: ROLE_HINT })}
    ${textField({ name: 'labels', label: 'Scope', hint: 'Comma-separated labels. This person sees and changes only machines with one of them. Leave empty for all machines. Administrators see all.', value: labels === NOTHING ? '' : labels, placeholder: 'all machines', list: LABELS, autocomplete: 'off' })}
    ${checkField({ name: 'labels', value: NOTHING, label: 'No machines', checked: labels === NOTHING })}
    <datalist id="${LABELS}">
      ${[...new Set(site.machines.peekAll().flatMap((machine) => machine.labels))]
        .toSorted()
        .slice(0, MAX_SUGGESTED)
        .map((label) => html`<option value="${label}"></option>`)}
    </datalist>`

const renderPasswordField = (label: string, hint: string): Html =>
  textField({
    name: 'password',
    label,
    type: 'password',
    autocomplete: 'new-password',
    required: true,
    maxLength: MAX_PASSWORD_LENGTH,
    hint,
  })

/** The check box comes last. */
const typedLabels = (form: URLSearchParams): string => form.getAll('labels').at(-1) ?? ''

const readRole = (form: URLSearchParams): Role | null =>
  ROLES.find((role) => role === form.get('role')) ?? null

// The scope of a person as the text of a form: what is shown of it says the same when it is saved again.

/** For a scope without machines; no label begins so. */
const NOTHING = '-'

/** Without stored labels that no machine can have: they show nothing. */
function renderScope(labels: Reach): string {
  if (labels === null) return ''
  return labels.filter((label) => LabelSchema.safeParse(label).success).join(', ') || NOTHING
}

/** Null: empty, so all machines are seen. */
function readScope(text: string): Reach {
  if (text.trim() === '') return null
  if (text.trim() === NOTHING) return []
  return text
    .split(',')
    .map((label) => label.trim())
    .filter((label) => label !== '')
}

/** /ui/people/{id}: what one person may do, their password, and how to keep them out. */

const ONE = `${PEOPLE_PATH}/:id`
const SETTINGS = '/ui/settings'

const PERSON_PAGES = [
  pageAt(ONE, 'admin', showPerson),
  formAt(`${ONE}/role`, 'admin', setRole),
  formAt(`${ONE}/password`, 'admin', setPassword),
  formAt(`${ONE}/block`, 'admin', (context: CurrentContext) => setBlocked(context, true)),
  formAt(`${ONE}/unblock`, 'admin', (context: CurrentContext) => setBlocked(context, false)),
  removalAt(`${ONE}/remove`, 'admin', askRemoval, remove),
]

const TRAIL = html`<a href="${PEOPLE_PATH}">People</a>`

async function showPerson(context: CurrentContext): Promise<Answer> {
  const person = findPerson(context)
  if (person === null) return answerChange(context, 'removed', refuse('unknown'))
  const owned = (await context.site.tokens.list()).filter(({ owner }) => owner === person.id)
  const tokens = owned.map(({ name }) => name)
  return await context.show({
    title: person.name,
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
    blocked_at === null ? (['block', 'Block'] as const) : (['unblock', 'Unblock'] as const)
  const facts: (readonly [string, Content])[] = [
    ['State', renderState(person)],
    ...(provider === null ? [] : [['Role', describeRights(person)] as const]),
    ['Last login', renderLastLogin(context, person)],
    ['Added', renderTime(person.created_at, context.clock())],
    ...(tokens.length === 0 ? [] : [['Tokens', describeTokens(person, tokens)] as const]),
  ]
  return html`${factList(facts)}
    <p><a href="${address('/ui/events', { person: name })}">Events of ${name}</a></p>
    <div class="row">
      ${provider === null ? null : postButton({ action: `${path}/${what}`, label })}
      ${questionButton({ action: `${path}/remove`, label: 'Remove…', tone: 'danger' })}
    </div>`
}

function renderForms(context: CurrentContext, { id, name, role, labels }: Person): Html {
  const path = pathOfPerson(id)
  const hint = `At least ${MIN_PASSWORD_LENGTH} characters. Ends all sessions of ${name}.`
  return html`${card({
    title: 'Role and scope',
    body: html`<form method="post" action="${path}/role" class="narrow">
      ${renderRightsFields(context, { role: role ?? '', labels: renderScope(labels) })}
      <button class="primary">Save role and scope</button>
    </form>`,
  })}
  ${card({
    title: 'Password',
    body: html`<form method="post" action="${path}/password" class="narrow">
      ${renderPasswordField('New password', hint)}
      <button>Set password</button>
    </form>`,
  })}`
}

async function setRole(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const role = readRole(form)
  if (role === null) return goBack(context, REFUSALS.role)
  // Without the field, the scope stays.
  const rights = { role, ...(form.has('labels') && { labels: readScope(typedLabels(form)) }) }
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
  return await showRemoval(context, {
    title: `Remove ${name}`,
    trail: TRAIL,
    question: html`Remove <bdi>${name}</bdi>?`,
    body: html`<p>
        ${'Their sessions end at once, and their tokens are revoked. Events and runs keep their name.'}
      </p>
      ${provider === null ? null : html`<p>The provider can let them in again. Block them instead to keep them out.</p>`}`,
    cancel: pathOfPerson(id),
    button: 'Remove person',
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

const ADD = `${PEOPLE_PATH}/add`

export const PEOPLE_PAGES = [
  pageAt(PEOPLE_PATH, 'admin', show),
  pageAt(ADD, 'admin', showForm),
  formAt(PEOPLE_PATH, 'admin', add),
  ...PROVIDER_PAGES,
  ...PERSON_PAGES,
]

async function show(context: CurrentContext): Promise<Answer> {
  const people = context.site.people?.store.list() ?? []
  return await context.show({
    title: 'People',
    learn: 'people.html',
    count: people.length,
    actions: html`<a class="button primary" href="${ADD}">Add a person</a>`,
    messages: html`${context.message()}${renderDone(context)}`,
    body: html`${
      people.length === 0
        ? emptyState(
            'No people yet',
            'Add people so that events, flashes and tokens show who did what. The administrator password stays.',
          )
        : html`${await renderPeople(context, people)}${renderNameless(context)}`
    }${renderProviderLink(context)}`,
  })
}

async function renderPeople(context: CurrentContext, people: readonly Person[]): Promise<Html> {
  const owned = Map.groupBy(await context.site.tokens.list(), ({ owner }) => owner)
  return renderTable({
    caption: 'People who log in with a name',
    columns: [
      'Name',
      'Role',
      'Scope',
      'Logs in with',
      'Last login',
      numberColumn('Tokens'),
      'State',
      ACTIONS,
    ],
    rows: people.map((person) =>
      renderPersonRow(context, person, owned.get(person.id)?.length ?? 0),
    ),
  })
}

function renderNameless({ services }: CurrentContext): Html {
  const wanted = services.config.current().people.nameless_login
  const text =
    wanted === 'always'
      ? 'The shared administrator password also opens this server.'
      : 'The shared administrator password is off while a person here is an administrator.'
  return html`<p class="small dim">
    ${text} <a href="${SETTINGS}#people.nameless_login">Change</a>
  </p>`
}

async function showForm(context: CurrentContext): Promise<Answer> {
  const typed = context.notice()?.typed ?? {}
  const rights = { role: typed['role'] ?? 'look', labels: typed['labels'] ?? '' }
  return await context.show({
    title: 'Add a person',
    trail: html`<a href="${PEOPLE_PATH}">People</a>`,
    messages: context.message(),
    body: card({
      body: html`<form method="post" action="${PEOPLE_PATH}" class="narrow">
        ${textField({ name: 'name', label: 'Name', hint: 'For the login: lowercase letters, digits and . _ - + @', required: true, maxLength: 64, value: typed['name'] ?? '', autocomplete: 'off' })}
        ${renderRightsFields(context, rights)}
        ${renderPasswordField('Password', `At least ${MIN_PASSWORD_LENGTH} characters.`)}
        <button class="primary">Add person</button>
      </form>`,
    }),
  })
}

async function add(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const name = form.get('name') ?? ''
  const role = readRole(form)
  const typed = { name, role: role ?? '', labels: typedLabels(form) }
  if (role === null) return context.goBack(ADD, { error: REFUSALS.role, typed })
  const password = form.get('password') ?? ''
  const added = await accountsOf(context).add(
    { name, role, password, labels: readScope(typed.labels) },
    context.by(),
  )
  if (added.ok) return goDone(context, 'added', added.value)
  return context.goBack(ADD, { error: REFUSALS[added.refusal], typed })
}
