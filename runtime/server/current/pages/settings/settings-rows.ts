/** One setting on the settings page: its name, value and source, what overrides it, and its form. */
import type { ShownSetting } from '../../../../kit/config/rules/shown-setting.ts'
import { pathOfUrl } from '../../../../kit/net/rules/host-header.ts'
import { attributes, fillHtml, html, type Content, type Html } from '../../../../kit/web/ui/html.ts'
import { hidden } from '../../../../kit/web/ui/fields.ts'
import { SETTING_TITLES } from './setting-titles.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill } from '../../../../kit/texts/text.ts'

const t = PAGES.settings.row

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
      ${row.isPending ? html`<p class="small warning">${t.restart}</p>` : null} ${renderPath(row)}
      <p class="small dim">${sourceOf(row)}</p>
    </div>
    <div>${renderChange(row, mine)}</div>
  </li>`
}

/** A proxy that serves this server below a path serves no pages there. */
function renderPath(row: ShownSetting): Html | null {
  const path = nameOf(row) === 'server.public_url' ? pathOfUrl(row.shown) : ''
  return path === '' ? null : html`<p class="small warning">${fill(t.publicPath, { path })}</p>`
}

function renderShown({ shown, isSecret }: ShownSetting): Content {
  const isSet = shown !== '' && !(isSecret && shown === 'unset')
  if (!isSet) return html`<span class="dim">${t.unset}</span>`
  return isSecret ? t.secret : shown
}

/** Settings that a form above the list changes, by its anchor; a line of a file is edited in the list. */
const CARDS: Readonly<Record<string, string>> = {
  'withcache.url': '#ramboot',
  'boot.release_repo': '#netboot-release',
  'boot.release_tag': '#netboot-release',
  'backup.enabled': '#backup-schedule',
  'backup.cadence': '#backup-schedule',
  'backup.retention': '#backup-schedule',
}

function renderChange(row: ShownSetting, refused: Refused | null): Html {
  const { origin, isLocked } = row
  if (isLocked) {
    const text = origin.by === 'environment' ? t.changed.environment : t.changed.secret
    return html`<span class="small dim">${text}</span>`
  }
  const anchor = CARDS[nameOf(row)]
  return anchor === undefined || origin.by === 'file' || refused !== null
    ? renderEdit(row, refused)
    : html`<a href="${anchor}">${t.changed.card}</a>`
}

function sourceOf({ origin, variable }: ShownSetting): Content {
  const code = html`<code>${variable}</code>`
  switch (origin.by) {
    case 'environment':
      return fillHtml(t.origin.environment, { variable: html`<code>${origin.variable}</code>` })
    case 'settings-page':
      return fillHtml(t.origin.page, { variable: code })
    case 'file':
      return fillHtml(t.origin.file, { path: html`<code>${origin.path}</code>`, variable: code })
    case 'default':
      return fillHtml(t.origin.default, { variable: code })
  }
}

const renderEdit = (row: ShownSetting, refused: Refused | null): Html => {
  const id = `edit-${nameOf(row)}`
  return html`<details${attributes({ open: refused !== null })}>
    <summary>${fillHtml(t.edit, { setting: html`<span class="spoken">${titleOf(nameOf(row))}</span>` })}</summary>
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
        <p class="hint" id="${id}-hint">${fill(t.hint, { type: row.wants })}${row.reload === 'restart' ? ` ${t.restart}` : ''}</p>
        ${refused === null ? null : html`<p class="error" role="alert">${refused.error}</p>`}
      </div>
      <button class="primary">${t.button}</button>
    </form>
  </details>`
}

/** Names between backticks are rendered as code. */
const renderHelp = (text: string): Content =>
  text.split('`').map((part, at) => (at % 2 === 0 ? part : html`<code>${part}</code>`))
