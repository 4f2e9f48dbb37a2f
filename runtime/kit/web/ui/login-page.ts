/** The login page: a field or two, one button, and what to do when the password is forgotten. */
import { hidden, textField } from './fields.ts'
import type { PageLayout } from './layout.ts'
import { html, type Content } from './html.ts'
import type { LoginView } from './site-views.ts'
import { PAGES } from '../../../server/texts/texts.ts'

const t = PAGES.frame.login

interface Login extends LoginView {
  readonly heading: string
  readonly label: string
  /** How to set a new password. */
  readonly help: Content
}

/** Renders the page; `error` stands below the field. */
export const renderLoginPage = (
  layout: PageLayout,
  { heading, label, help, error, next, name, names }: Login,
): string =>
  layout.bare({
    title: t.title,
    body: html`<h1>${heading}</h1>
      <form method="post" action="/ui/login">
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
                autofocus: name === '',
                hint: names === 'required' ? null : t.nameHint,
              })
        }
        ${textField({
          name: 'password',
          label: names === 'none' ? label : t.password,
          type: 'password',
          autocomplete: 'current-password',
          required: true,
          autofocus: names === 'none' || name !== '',
          error,
        })}
        <button class="primary">${t.button}</button>
      </form>
      <details>
        <summary>${t.forgotten}</summary>
        <p class="prose">${help}</p>
      </details>`,
  })
