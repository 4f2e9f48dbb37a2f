/** The card of /ui/account that changes the administrator password, or says where it is set. */
import type { H3Event, HTTPResponse } from 'h3'
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../../../core/access/new-password.ts'
import type { Origin } from '../../../../core/config/settings-parser.ts'
import type { PasswordRefusal } from '../../../../web/access/password-change.ts'
import { refuse } from '../../../../web/http/faults.ts'
import { card } from '../../../../web/ui/elements.ts'
import { textField } from '../../../../web/ui/fields.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
import { findPasswordOrigin } from '../../assembly/configuration.ts'
import { goBack, goTo } from '../frame/form-answer.ts'
import type { PageContext } from '../frame/page-context.ts'

const PATH = '/ui/account'

/** Field names of the form. */
const FIELDS = ['current', 'password', 'repeated'] as const
type Field = (typeof FIELDS)[number]

export function renderPassword(context: PageContext, event: H3Event): Html {
  const origin = findPasswordOrigin(context.services.config)
  return card({
    title: 'Password',
    id: 'change-password',
    body: origin === null ? renderForm(context, event) : renderOrigin(origin),
  })
}

const renderOrigin = (origin: Origin): Html =>
  html`<p>
      ${
        origin.by === 'environment'
          ? html`The password is set by the environment variable <code>${origin.variable}</code>.
              Change it there and restart the server.`
          : html`The password is set in ${describe(origin)}. Change it there; the server uses the
            new one when it reads its configuration again.`
      }
    </p>
    <p class="small dim">
      Once it is removed there, the password can be changed on this page and with
      <code>flasher-web password</code>.
    </p>`

const describe = (origin: Origin): Content =>
  origin.by === 'file' ? html`<code>${origin.path}</code>` : 'the configuration'

function renderForm({ site }: PageContext, event: H3Event): Html {
  const notice = site.notices.read(event)
  const errorAt = (field: Field) => (notice?.typed['at'] === field ? notice.error : null)
  return html`<form method="post" action="${PATH}/password" class="narrow">
    <input name="username" value="administrator" autocomplete="username" hidden />
    ${textField({
      name: 'current',
      label: 'Current password',
      type: 'password',
      autocomplete: 'current-password',
      required: true,
      error: errorAt('current'),
    })}
    ${textField({
      name: 'password',
      label: 'New password',
      type: 'password',
      autocomplete: 'new-password',
      required: true,
      minLength: MIN_PASSWORD_LENGTH,
      maxLength: MAX_PASSWORD_LENGTH,
      hint: `At least ${MIN_PASSWORD_LENGTH} characters.`,
      error: errorAt('password'),
    })}
    ${textField({
      name: 'repeated',
      label: 'Repeat new password',
      type: 'password',
      autocomplete: 'new-password',
      required: true,
      error: errorAt('repeated'),
    })}
    <button class="primary">Change password</button>
    <p class="hint">All other sessions are logged out; this one stays. API tokens stay valid.</p>
  </form>`
}

export async function changePassword(
  { site, services }: PageContext,
  event: H3Event,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  if (findPasswordOrigin(services.config) !== null) {
    throw refuse(409, 'the configuration sets the password: change it there')
  }
  const [current = '', password = '', repeated = ''] = FIELDS.map((name) => form.get(name) ?? '')
  const changed = await site.changePassword(event, { current, password, repeated })
  if (changed.ok) return goTo(event, `${PATH}?changed=password`)
  const { at, error } = describeRefusal(changed.refusal)
  // What was typed is not kept: browsers keep pages.
  return goBack(site, event, PATH, { error, typed: { at }, anchor: 'change-password' })
}

interface Described {
  readonly at: Field
  readonly error: string
}

function describeRefusal(refusal: PasswordRefusal): Described {
  switch (refusal.why) {
    case 'wait':
      return { at: 'current', error: `Too many attempts: try again in ${refusal.seconds} s.` }
    case 'wrong':
      return { at: 'current', error: 'Wrong password.' }
    case 'elsewhere':
      return { at: 'current', error: 'The password is changed in the operating system.' }
    case 'unchanged':
      return { at: 'password', error: 'The new password is the same as the current one.' }
    case 'too-short':
      return { at: 'password', error: `Enter at least ${MIN_PASSWORD_LENGTH} characters.` }
    case 'too-long':
      return { at: 'password', error: `Enter at most ${MAX_PASSWORD_LENGTH} characters.` }
    case 'control-characters':
      return { at: 'password', error: 'The password may not contain control characters.' }
    case 'differs':
      return { at: 'repeated', error: 'The two passwords are different.' }
  }
}
