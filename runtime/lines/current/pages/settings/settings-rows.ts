/** One setting on its page: what it is, who says so, what would overrule it, and its form. */
import type { ShownSetting } from '../../../../core/config/shown-setting.ts'
import { attributes, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { hidden } from '../../../../web/ui/fields.ts'

/** What was typed and refused, to stand where it was typed. */
export interface Refused {
  /** `server.port` */
  readonly name: string
  readonly text: string
  readonly error: string
}

export const nameOf = ({ section, key }: Pick<ShownSetting, 'section' | 'key'>): string =>
  `${section}.${key}`

export function renderSetting(row: ShownSetting, refused: Refused | null): Html {
  const name = nameOf(row)
  const mine = refused?.name === name ? refused : null
  return html`<li class="setting" id="${name}">
    <div><code>${name}</code></div>
    <div>
      <strong>${row.shown === '' ? html`<span class="dim">not set</span>` : row.shown}</strong>
      <span class="small dim">${sourceOf(row)}</span>
      ${row.isPending ? html`<span class="small warning">in effect from the next start on</span>` : null}
      <p class="small dim">${sentences(row.help)}</p>
    </div>
    <div>
      ${row.locked === null ? renderEdit(row, mine) : html`<span class="small dim">${upperFirst(row.locked)}.</span>`}
    </div>
  </li>`
}

function sourceOf({ origin, variable }: ShownSetting): Content {
  switch (origin.by) {
    case 'environment':
      return html`from the environment, <code>${origin.variable}</code>`
    case 'settings-page':
      return html`saved on this page; <code>${variable}</code> would overrule it`
    case 'file':
      return html`from <code>${origin.path}</code>; <code>${variable}</code> would overrule it`
    case 'default':
      return html`the default; <code>${variable}</code> or a file can say else`
  }
}

const renderEdit = (row: ShownSetting, refused: Refused | null): Html => {
  const id = `edit-${nameOf(row)}`
  return html`<details${attributes({ open: refused !== null })}>
    <summary>Edit<span class="spoken"> ${nameOf(row)}</span></summary>
    <form method="post" action="/ui/settings/config/edit">
      ${hidden({ section: row.section, key: row.key })}
      <div class="field">
        <label for="${id}">${nameOf(row)}</label>
        <input${attributes({
          id,
          name: 'value',
          value: refused?.text ?? row.text,
          autocomplete: 'off',
          spellcheck: 'false',
          'aria-invalid': refused === null ? null : 'true',
          'aria-describedby': `${id}-hint`,
        })} />
        <p class="hint" id="${id}-hint">Wants ${row.wants}. Empty: the line is taken out.${row.reload === 'restart' ? ' In effect from the next start on.' : ''}</p>
        ${refused === null ? null : html`<p class="error" role="alert">${refused.error}</p>`}
      </div>
      <button class="primary">Save</button>
    </form>
  </details>`
}

/** Names between backticks are set as code. */
const sentences = (text: string): Content =>
  text.split('`').map((part, at) => (at % 2 === 0 ? part : html`<code>${part}</code>`))

const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
