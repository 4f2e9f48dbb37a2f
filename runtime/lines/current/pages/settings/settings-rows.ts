/** One setting on the settings page: its value, its source, what overrides it, and its form. */
import type { ShownSetting } from '../../../../core/config/shown-setting.ts'
import { attributes, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { hidden } from '../../../../web/ui/fields.ts'

/** What was typed and refused, to be shown in its field again. */
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
      ${row.isPending ? html`<span class="small warning">takes effect after a restart</span>` : null}
      <p class="small dim">${renderHelp(row.help)}</p>
    </div>
    <div>
      ${row.locked === null ? renderEdit(row, mine) : html`<span class="small dim">${upperFirst(row.locked)}.</span>`}
    </div>
  </li>`
}

function sourceOf({ origin, variable }: ShownSetting): Content {
  switch (origin.by) {
    case 'environment':
      return html`from the environment variable <code>${origin.variable}</code>`
    case 'settings-page':
      return html`saved on this page; override with <code>${variable}</code>`
    case 'file':
      return html`from <code>${origin.path}</code>; override with <code>${variable}</code>`
    case 'default':
      return html`Default; override with <code>${variable}</code> or a file`
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
        <p class="hint" id="${id}-hint">Must be ${row.wants}. Leave empty to remove it.${row.reload === 'restart' ? ' Takes effect after a restart.' : ''}</p>
        ${refused === null ? null : html`<p class="error" role="alert">${refused.error}</p>`}
      </div>
      <button class="primary">Save</button>
    </form>
  </details>`
}

/** Names between backticks are rendered as code. */
const renderHelp = (text: string): Content =>
  text.split('`').map((part, at) => (at % 2 === 0 ? part : html`<code>${part}</code>`))

const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
