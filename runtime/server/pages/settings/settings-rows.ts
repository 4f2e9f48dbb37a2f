/** One setting on the settings page: its name, its field, its default and source, or why it is locked. */
import {
  decideLock,
  type EditPaths,
  type Lock,
  type ShownSetting,
} from '#kit/config/rules/shown-setting.ts'
import { pathOfUrl } from '#kit/net/rules/host-header.ts'
import { badge, icon } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { attributes, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'
import { inputOf, renderControl, renderHint } from './setting-fields.ts'
import { describeFallback, describeValue } from './setting-texts.ts'

const t = PAGES.settings.row

interface Typed {
  readonly text: string
  /** Null: another field was refused. */
  readonly error: string | null
}

export type Refusals = ReadonlyMap<string, Typed>

/** `topic`: the headings above. Of secrets, the text says only whether they are set. */
export const keywordsOf = (row: ShownSetting, topic: string): string => {
  const { title, help, labels } = row.setting
  const variable = row.variable.replace(PREFIX, '')
  const words = [help.replaceAll(PROGRAM, ''), row.shown, ...Object.values(labels), topic]
  return [title, row.name, variable, ...words].join(' ')
}

/** Ignored with the names of our programs: "flash" would find everything. */
const PREFIX = /^FLASHER_/
const PROGRAM = /flasher(?:-(?:web|cache))?/g

interface SettingView {
  readonly paths: EditPaths
  readonly refusals: Refusals
  readonly keywords: string
  readonly isHidden: boolean
  readonly isSaved: boolean
}

export function renderSetting(row: ShownSetting, view: SettingView): Html {
  const { name } = row
  const typed = view.refusals.get(name)
  const isHidden = view.isHidden && typed === undefined && !view.isSaved
  const found = { 'data-keywords': view.keywords, hidden: isHidden }
  const lock = decideLock(row, view.paths)
  const isEdited = lock === null
  return html`<li class="setting" id="${name}" ${attributes(found)}>
    <div>
      ${renderTitle(row, isEdited)} <code class="key">${name}</code>
      <p class="small dim" id="${idOf(name)}-help">${renderHelp(row.setting.help)}</p>
    </div>
    <div>
      ${lock === null ? renderEdit(row, typed) : renderFixed(row)}
      ${view.isSaved ? html`<p class="saved">${badge('done', t.saved)}</p>` : null}
      ${typed?.error ? html`<p class="error" id="${idOf(name)}-error">${typed.error}</p>` : null}
      ${renderWarnings(row)}
      <p class="small dim">${lock === null ? sourceOf(row) : fillLock(row, lock)}</p>
    </div>
  </li>`
}

/** The row's id is the name itself. */
const idOf = (name: string): string => `set-${name}`

const renderTitle = ({ name, setting: { title } }: ShownSetting, isEdited: boolean): Html =>
  isEdited ? html`<label for="${idOf(name)}">${title}</label>` : html`<strong>${title}</strong>`

function renderEdit(row: ShownSetting, typed: Typed | undefined): Html {
  const { name, setting } = row
  const id = idOf(name)
  const [hints, isWrong] = [[renderHint(row), effectOf(row)].filter(Boolean), Boolean(typed?.error)]
  const described = [
    `${id}-help`,
    hints.length === 0 ? '' : `${id}-hint`,
    isWrong ? `${id}-error` : '',
  ]
  const isSet = isRemovable(row) && setting.field.as !== 'toggle'
  return html`${hidden({ [`was:${name}`]: setting.isSecret ? null : inputOf(row) })}
    <div class="control">
      ${renderControl(row, {
        id,
        text: typed?.text ?? inputOf(row),
        isWrong,
        describedBy: described.filter(Boolean).join(' '),
      })}
      ${isSet ? renderReset(row) : null}
    </div>
    ${hints.length === 0 ? null : html`<p class="hint" id="${id}-hint">${hints.join(' ')}</p>`}`
}

/** Values of cards are not in files. */
const isRemovable = ({ setting, origin }: ShownSetting): boolean =>
  origin.by === (setting.card === null ? 'file' : 'settings-page')

/** Null: at once. */
function effectOf({ setting: { program, reload }, isPending }: ShownSetting): string | null {
  if (program === 'flasher-cache')
    return t.effect[reload === 'restart' ? 'restartCache' : 'reloadCache']
  return reload === 'restart' && !isPending ? t.effect.restart : null
}

function renderReset({ name, setting }: ShownSetting): Html {
  const word = setting.isSecret ? t.remove : t.reset
  const label = fill(t.resetLabel, { word, setting: setting.title })
  return html`<button name="reset" value="${name}" formnovalidate aria-label="${label}">
    ${word}
  </button>`
}

function renderFixed(row: ShownSetting): Html {
  const value = row.setting.isSecret
    ? row.shown === 'set' && t.secret
    : describeValue(row.setting, row.value) || row.shown
  return html`<p class="fixed">
    ${icon('lock')}
    <span class="value">${value || html`<span class="dim">${t.unset}</span>`}</span>
  </p>`
}

function renderWarnings(row: ShownSetting): Content {
  // A proxy with a path serves no pages there.
  const path = row.name === 'server.public_url' ? pathOfUrl(row.shown) : ''
  const warnings = [row.isPending ? t.pending : '', path && fill(t.publicPath, { path })]
  return warnings.filter(Boolean).map((text) => html`<p class="small warning">${text}</p>`)
}

function sourceOf({ setting, origin, variable }: ShownSetting): Content {
  const values = {
    variable: html`<code>${variable}</code>`,
    default: describeFallback(setting),
  }
  switch (origin.by) {
    case 'environment':
      return null
    case 'settings-page':
      return fillHtml(t.origin.page, values)
    case 'file':
      return fillHtml(t.origin.file, { path: html`<code>${origin.path}</code>`, ...values })
    case 'default':
      return fillHtml(t.origin.default, values)
  }
}

function fillLock(row: ShownSetting, lock: Lock): Content {
  switch (lock.why) {
    case 'environment':
      return fillHtml(t.locked.environment, { variable: html`<code>${lock.variable}</code>` })
    case 'kept':
      return html`${row.name === 'admin.password' ? renderAccount() : t.locked.kept}
      ${sourceOf(row)}`
    case 'read-only': {
      const paths = html`<code>${lock.paths.join(', ')}</code>`
      return row.origin.by === 'file'
        ? fillHtml(t.locked.file, { path: paths })
        : html`${fillHtml(lock.paths.length === 0 ? t.locked.noFile : t.locked.files, { paths })}
          ${sourceOf(row)}`
    }
  }
}

const renderAccount = (): Html =>
  fillHtml(t.locked.password, {
    account: html`<a href="/ui/account#change-password">${t.account}</a>`,
  })

const renderHelp = (text: string): Content =>
  text.split('`').map((part, at) => (at % 2 === 0 ? part : html`<code>${part}</code>`))
