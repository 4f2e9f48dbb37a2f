/** One setting on the settings page: its name, value and source, what overrides it, and its form. */
import type { ShownSetting } from '../../../../core/config/shown-setting.ts'
import { attributes, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { hidden } from '../../../../web/ui/fields.ts'
import { SETTING_TITLES } from './setting-titles.ts'

/** What was typed and refused, to be shown in its field again. */
export interface Refused {
  /** `server.port` */
  readonly name: string
  readonly text: string
  readonly error: string
}

export const nameOf = ({ section, key }: Pick<ShownSetting, 'section' | 'key'>): string =>
  `${section}.${key}`

export const titleOf = (name: string): string => SETTING_TITLES.get(name) ?? name

/** What the search looks in; `topic` are the headings above it. Of secrets only whether they are set. */
export const keywordsOf = (row: ShownSetting, topic: string): string => {
  const variable = row.variable.replace(PREFIX, '')
  const help = row.help.replaceAll(PROGRAM, '')
  return [titleOf(nameOf(row)), nameOf(row), variable, help, row.shown, topic].join(' ')
}

/** In all of them: a search for "flash" would find everything. */
const PREFIX = /^FLASHER_/
const PROGRAM = /flasher(?:-(?:web|cache))?/g

interface SettingView {
  readonly refused: Refused | null
  readonly keywords: string
  readonly isHidden: boolean
}

export function renderSetting(row: ShownSetting, view: SettingView): Html {
  const name = nameOf(row)
  const mine = view.refused?.name === name ? view.refused : null
  const found = { 'data-keywords': view.keywords, hidden: view.isHidden && mine === null }
  return html`<li class="setting" id="${name}" ${attributes(found)}>
    <div>
      <strong>${titleOf(name)}</strong> <code class="key">${name}</code>
      <p class="small dim">${renderHelp(row.help)}</p>
    </div>
    <div>
      <span class="value">${renderShown(row)}</span>
      ${row.isPending ? html`<p class="small warning">Takes effect after a restart.</p>` : null}
      <p class="small dim">${sourceOf(row)}</p>
    </div>
    <div>
      ${row.locked === null ? renderEdit(row, mine) : html`<span class="small dim">${lockOf(row)}</span>`}
    </div>
  </li>`
}

function renderShown({ shown, isSecret }: ShownSetting): Content {
  const isSet = shown !== '' && !(isSecret && shown === 'unset')
  if (!isSet) return html`<span class="dim">not set</span>`
  return isSecret ? 'set, not shown' : shown
}

/** The source stands beside it already. */
const lockOf = ({ locked, origin }: ShownSetting): string =>
  origin.by === 'environment' ? 'Change it there.' : `${upperFirst(locked ?? '')}.`

function sourceOf({ origin, variable }: ShownSetting): Content {
  switch (origin.by) {
    case 'environment':
      return html`From the environment variable <code>${origin.variable}</code>`
    case 'settings-page':
      return html`Saved on this page; override with <code>${variable}</code>`
    case 'file':
      return html`From <code>${origin.path}</code>; override with <code>${variable}</code>`
    case 'default':
      return html`Default; override with <code>${variable}</code> or a file`
  }
}

const renderEdit = (row: ShownSetting, refused: Refused | null): Html => {
  const id = `edit-${nameOf(row)}`
  return html`<details${attributes({ open: refused !== null })}>
    <summary>Edit<span class="spoken"> ${titleOf(nameOf(row))}</span></summary>
    <form method="post" action="/ui/settings/config/edit">
      ${hidden({ section: row.section, key: row.key })}
      <div class="field">
        <label for="${id}">${titleOf(nameOf(row))}</label>
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
