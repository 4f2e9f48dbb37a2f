/** The login page, and the page of an error. */
import { banner } from '../../../../web/ui/elements.ts'
import { hidden, textField } from '../../../../web/ui/fields.ts'
import type { Frame } from '../../../../web/ui/frame.ts'
import { html } from '../../../../web/ui/html.ts'
import type { LoginView } from '../../../../web/fleet/views.ts'
import type { ErrorView } from '../../../../web/http/caller.ts'

export const renderLogin = (frame: Frame, { error, next }: LoginView): string =>
  frame.bare({
    title: 'Log in',
    body: html`<h1>flasher</h1>
      <form method="post" action="/ui/login">
        ${hidden({ next })}
        <input name="username" value="administrator" autocomplete="username" hidden />
        ${textField({
          name: 'password',
          label: 'Administrator password',
          type: 'password',
          autocomplete: 'current-password',
          required: true,
          autofocus: true,
          error,
        })}
        <button class="primary">Log in</button>
      </form>
      <details>
        <summary>The password is lost</summary>
        <p class="prose">
          On the server, run <code>flasher-web password</code>: it sets a new one and ends all
          sessions. The first start printed the first password, and where it is kept.
        </p>
      </details>`,
  })

export const renderError = (frame: Frame, view: ErrorView): string =>
  frame.bare({
    title: `${view.status} ${view.title}`,
    body: html`<section id="question" class="stack">
      <h1 id="dialog-title">${view.title}</h1>
      ${banner('failed', html`${sentence(view.detail)}${view.hint === null ? null : html` ${view.hint}`}`)}
      <p>
        ${
          view.loggedIn
            ? html`<a href="/ui/dashboard">To the dashboard</a> ·
                <a href="/ui/machines">To the machines</a>`
            : html`<a href="/ui/login">Log in</a>`
        }
      </p>
    </section>`,
  })

/** Refusals are clauses; a page speaks in sentences. */
function sentence(clause: string): string {
  const text = clause.charAt(0).toUpperCase() + clause.slice(1)
  return /[.:?]$/.test(text) ? text : `${text}.`
}
