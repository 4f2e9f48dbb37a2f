/** The login page: a field or two, one button, and what to do when the password is forgotten. */
import { hidden, textField } from './fields.ts'
import type { PageLayout } from './layout.ts'
import { banner } from './elements.ts'
import { html, type Content, type Html } from './html.ts'
import type { LoginView, ProviderView } from './site-views.ts'
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.frame.login

interface Login extends LoginView {
  readonly heading: string
  readonly label: string
  /** How to set a new password. */
  readonly help: Content
}

/** `error` stands below the field. */
export const renderLoginPage = (layout: PageLayout, view: Login): string =>
  layout.bare({
    title: t.title,
    body: html`<h1>${view.heading}</h1>
      ${view.provider === null ? null : renderProvider(view.provider, view)}
      ${view.names === 'nobody' ? null : renderPasswordForm(view)}`,
  })

function renderProvider({ name, href, error }: ProviderView, login: Login): Html {
  const hasPasswords = login.names !== 'nobody'
  // The form shows its own.
  const shown = error ?? (hasPasswords ? null : login.error)
  return html`<section class="stack provider">
    ${shown === null ? null : banner('failed', shown)}
    <a class="button primary" href="${href}">${fill(PAGES.provider.button, { name })}</a>
    ${hasPasswords ? html`<p class="small dim">${PAGES.provider.or}</p>` : null}
  </section>`
}

/** The field in which somebody goes on: after a refusal the password, unless it is the name that lacks. */
function chooseFocus({ error, name, names, provider }: Login): 'name' | 'password' | null {
  if (error === null && name === '' && provider !== null) return null
  if (names === 'none' || name !== '') return 'password'
  return error === null || names === 'required' ? 'name' : 'password'
}

const renderPasswordForm = (login: Login): Html => renderFields(login, chooseFocus(login))

const renderFields = (
  { label, help, error, next, name, names, provider }: Login,
  focus: ReturnType<typeof chooseFocus>,
): Html =>
  html`<form method="post" action="/ui/login">
      ${hidden({ next, check: 'cookies' })}
      ${
        names === 'none'
          ? html`<input name="username" value="administrator" autocomplete="username" hidden />`
          : textField({
              name: 'username',
              label: t.name,
              value: name,
              autocomplete: 'username',
              required: names === 'required',
              autofocus: focus === 'name',
              hint: names === 'required' ? null : t.nameHint,
            })
      }
      ${textField({
        name: 'password',
        label: names === 'none' ? label : t.password,
        type: 'password',
        autocomplete: 'current-password',
        required: true,
        autofocus: focus === 'password',
        error,
      })}
      <button class="${provider === null ? 'primary' : ''}" data-busy="${t.busy}">
        ${t.button}
      </button>
    </form>
    <details>
      <summary>${t.forgotten}</summary>
      <p class="prose">${help}</p>
    </details>`
