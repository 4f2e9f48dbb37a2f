/** The card of /ui/account that changes the administrator password, or says where it is set. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '#kit/web/access/rules/new-password.ts'
import type { Origin } from '#kit/config/rules/settings-parser.ts'
import type { PasswordRefusal } from '#kit/web/access/password-change.ts'
import { personOf } from '#kit/web/answers/caller.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { card } from '#kit/web/ui/elements.ts'
import { textField } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { findPasswordOrigin } from '#server/current/assembly/configuration.ts'
import { formAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'

const t = PAGES.account.password

const PATH = '/ui/account'

const FIELDS = ['current', 'password', 'repeated'] as const
type PasswordField = (typeof FIELDS)[number]

export const PASSWORD_POSTS = [formAt(`${PATH}/password`, changePassword)]

export function renderPassword(context: CurrentContext): Html {
  if (isOfProvider(context)) return card({ title: t.title, body: html`<p>${t.ofProvider}</p>` })
  const origin = findOrigin(context)
  return card({
    title: t.title,
    id: 'change-password',
    body: origin === null ? renderForm(context) : renderOrigin(origin),
  })
}

function isOfProvider({ site, event }: CurrentContext): boolean {
  const id = personOf(site.caller(event))?.id
  const person = id === undefined ? null : (site.people?.store.find(id) ?? null)
  return person !== null && person.provider !== null
}

const findOrigin = ({ site, event, services }: CurrentContext): Origin | null =>
  personOf(site.caller(event)) === null ? findPasswordOrigin(services.config) : null

const renderOrigin = (origin: Origin): Html =>
  html`<p>${describeOrigin(origin)}</p>
    <p class="small dim">
      ${fillHtml(t.origin.note, { command: html`<code>flasher-web password</code>` })}
    </p>`

function describeOrigin(origin: Origin): Content {
  if (origin.by === 'environment')
    return fillHtml(t.origin.environment, { variable: html`<code>${origin.variable}</code>` })
  if (origin.by === 'file')
    return fillHtml(t.origin.file, { path: html`<code>${origin.path}</code>` })
  return t.origin.other
}

function renderForm(context: CurrentContext): Html {
  const notice = context.notice()
  const field = (
    name: PasswordField,
    label: string,
    more: Partial<Parameters<typeof textField>[0]> = {},
  ) =>
    textField({
      name,
      label,
      type: 'password',
      autocomplete: 'new-password',
      required: true,
      error: notice?.typed['at'] === name ? notice.error : null,
      ...more,
    })
  return html`<form method="post" action="${PATH}/password" class="narrow">
    <input name="username" value="${nameOf(context)}" autocomplete="username" hidden />
    ${field('current', t.current, { autocomplete: 'current-password' })}
    ${field('password', t.next, {
      minLength: MIN_PASSWORD_LENGTH,
      maxLength: MAX_PASSWORD_LENGTH,
      hint: fill(t.hint, { count: MIN_PASSWORD_LENGTH }),
    })}
    ${field('repeated', t.repeated)}
    <button class="primary">${t.button}</button>
    <p class="hint">${t.note}</p>
  </form>`
}

/** For password managers. */
const nameOf = ({ site, event }: CurrentContext): string =>
  personOf(site.caller(event))?.name ?? 'administrator'

async function changePassword(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  if (findOrigin(context) !== null) {
    throw refuse(409, 'the configuration sets the password: change it there')
  }
  if (isOfProvider(context)) throw refuse(409, 'the provider knows the password: change it there')
  const [current = '', password = '', repeated = ''] = FIELDS.map((name) => form.get(name) ?? '')
  const changed = await context.site.changePassword(context.event, { current, password, repeated })
  if (changed.ok) return context.goTo(`${PATH}?changed=password`)
  const { at, error } = describeRefusal(changed.refusal)
  // What was typed is not kept: browsers keep pages.
  return context.goBack(PATH, { error, typed: { at }, anchor: 'change-password' })
}

function describeRefusal(refusal: PasswordRefusal): {
  readonly at: PasswordField
  readonly error: string
} {
  switch (refusal.why) {
    case 'wait':
      return { at: 'current', error: fill(t.errors.wait, { seconds: refusal.seconds }) }
    case 'wrong':
    case 'elsewhere':
      return { at: 'current', error: t.errors[refusal.why] }
    case 'too-short':
      return { at: 'password', error: fill(t.errors.tooShort, { count: MIN_PASSWORD_LENGTH }) }
    case 'too-long':
      return { at: 'password', error: fill(t.errors.tooLong, { count: MAX_PASSWORD_LENGTH }) }
    case 'unchanged':
      return { at: 'password', error: t.errors.unchanged }
    case 'control-characters':
      return { at: 'password', error: t.errors.controlCharacters }
    case 'differs':
      return { at: 'repeated', error: t.errors.differs }
  }
}
