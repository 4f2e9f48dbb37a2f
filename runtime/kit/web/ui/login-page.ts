/** The login page: one field, one button, and what to do when the password is forgotten. */
import { hidden, textField } from './fields.ts'
import type { PageLayout } from './layout.ts'
import { html, type Content } from './html.ts'
import { PAGES } from '../../../server/texts/texts.ts'

const t = PAGES.frame.login

interface Login {
  readonly heading: string
  readonly label: string
  /** How to set a new password. */
  readonly help: Content
  readonly error: string | null
  /** Where a login leads. */
  readonly next: string
}

/** Renders the page; `error` stands below the field. */
export const renderLoginPage = (
  layout: PageLayout,
  { heading, label, help, error, next }: Login,
): string =>
  layout.bare({
    title: t.title,
    body: html`<h1>${heading}</h1>
      <form method="post" action="/ui/login">
        ${hidden({ next, check: 'cookies' })}
        <input name="username" value="administrator" autocomplete="username" hidden />
        ${textField({
          name: 'password',
          label,
          type: 'password',
          autocomplete: 'current-password',
          required: true,
          autofocus: true,
          error,
        })}
        <button class="primary">${t.button}</button>
      </form>
      <details>
        <summary>${t.forgotten}</summary>
        <p class="prose">${help}</p>
      </details>`,
  })
