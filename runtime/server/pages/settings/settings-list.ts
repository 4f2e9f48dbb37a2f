/** The settings page of both lines: every setting with its source, a search, and one form for the configuration files. */
import { SETTING_GROUPS, SETTING_JOBS, type SettingJob } from '#kit/config/rules/setting.ts'
import {
  decideLock,
  type EditPaths,
  type Lock,
  type ShownSetting,
} from '#kit/config/rules/settings-parser.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { banner, card, emptyState, foldedCard, icon, badge } from '#kit/web/ui/elements.ts'
import {
  attributes,
  fillHtml,
  html,
  NOTHING,
  trusted,
  type Content,
  type Html,
  address,
} from '#kit/web/ui/html.ts'
import { searchField } from '#kit/web/ui/tables.ts'
import { fillCount, fill } from '#kit/foundation/text.ts'
import type { PageContext } from '../page-context.ts'
import {
  inputOf,
  renderControl,
  renderHint,
  describeFallback,
  describeValue,
} from './setting-fields.ts'
import { pathOfUrl } from '#kit/net/rules/host-header.ts'
import { hidden } from '#kit/web/ui/fields.ts'

// One setting on the settings page: its title, its source, its field, or why it is locked.

interface Typed {
  readonly text: string
  /** Null: another field was refused. */
  readonly error: string | null
}

type Refusals = ReadonlyMap<string, Typed>

/** `topic`: the headings above. Of secrets, the text says only whether they are set. */
const keywordsOf = (row: ShownSetting, topic: string): string => {
  const { title, help, labels } = row.setting
  const variable = row.variable.replace(PREFIX, '')
  const words = [help.replaceAll(PROGRAM, ''), row.shown, ...Object.values(labels), topic]
  return [title, row.name, variable, ...words].join(' ')
}

/** Ignored with the names of our programs: "flash" would find everything. */
const PREFIX = /^FLASHER_/
const PROGRAM = /flasher(?:-(?:web|cache))?/g

function renderSetting(row: ShownSetting, view: SettingsView, topic: string): Html {
  const { name } = row
  const [typed, isSaved] = [view.refusals.get(name), view.saved.has(name)]
  const keywords = keywordsOf(row, topic)
  const isHidden = !view.search.finds(keywords) && typed === undefined && !isSaved
  const found = { 'data-keywords': keywords, hidden: isHidden }
  const lock = decideLock(row, view.paths)
  const isEdited = lock === null
  return html`<li class="setting" id="${name}" ${attributes(found)}>
    <div>
      <div class="named">${renderTitle(row, isEdited)} ${renderSource(row)}</div>
      <p class="small dim" id="${idOf(name)}-help">${renderHelp(row.setting.help)}</p>
    </div>
    <div>
      ${lock === null ? renderEdit(row, typed) : renderFixed(row)}
      ${isSaved ? html`<p class="saved">${badge('done', 'Saved')}</p>` : null}
      ${typed?.error ? html`<p class="error" id="${idOf(name)}-error">${typed.error}</p>` : null}
      ${renderWarnings(row)}
      ${lock === null ? null : html`<p class="small dim">${fillLock(row, lock)}</p>`}
    </div>
  </li>`
}

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
  origin.by === 'settings-page' || (setting.card === null && origin.by === 'file')

const EFFECT = {
  restart: 'Takes effect after a restart.',
  restartCache: 'Takes effect after a restart of flasher-cache.',
  reloadCache: 'Takes effect when flasher-cache is reloaded.',
} as const

/** Null: at once. */
function effectOf({ setting: { program, reload }, isPending }: ShownSetting): string | null {
  if (program === 'flasher-cache')
    return EFFECT[reload === 'restart' ? 'restartCache' : 'reloadCache']
  return reload === 'restart' && !isPending ? EFFECT.restart : null
}

function renderReset({ name, setting }: ShownSetting): Html {
  const word = setting.isSecret ? 'Remove' : 'Use default'
  const label = `${word}: ${setting.title}`
  return html`<button name="reset" value="${name}" formnovalidate aria-label="${label}">
    ${word}
  </button>`
}

function renderFixed(row: ShownSetting): Html {
  const value = row.setting.isSecret
    ? row.shown === 'set' && 'set, not shown'
    : describeValue(row.setting, row.value) || row.shown
  return html`<p class="fixed">
    ${icon('lock')} <span class="value">${value || html`<span class="dim">not set</span>`}</span>
  </p>`
}

export const PUBLIC_PATH =
  'The public address has the path {path}: boot scripts and boot files are below it, pages are not. Open pages at the root of a host name.'

function renderWarnings(row: ShownSetting): Content {
  // A proxy with a path serves no pages there.
  const path = row.name === 'server.public_url' ? pathOfUrl(row.shown) : ''
  const warnings = [
    row.isPending ? 'Changed. Takes effect after a restart.' : '',
    path && fill(PUBLIC_PATH, { path }),
  ]
  return warnings.filter(Boolean).map((text) => html`<p class="small warning">${text}</p>`)
}

const SOURCES = {
  environment: ['Environment', 'Set by {variable}. Default: {default}.'],
  file: ['File', 'Set in {path}. {variable} overrides it. Default: {default}.'],
  'settings-page': [
    'Saved here',
    'Saved on this page. {variable} overrides it. Default: {default}.',
  ],
  default: ['Default', 'Default: {default}. A file or {variable} overrides it.'],
} as const

/** On demand: few people want to know more than the word. */
function renderSource({ name, setting, origin, variable }: ShownSetting): Html {
  const [word, text] = SOURCES[origin.by]
  const values = {
    variable: html`<code>${variable}</code>`,
    default: describeFallback(setting),
    path: origin.by === 'file' ? html`<code>${origin.path}</code>` : null,
  }
  return html`<details class="source small dim">
    <summary aria-label="${word}: ${setting.title}">${word}</summary>
    <code>${name}</code><br />${fillHtml(text, values)}
  </details>`
}

function fillLock(row: ShownSetting, lock: Lock): Content {
  switch (lock.why) {
    case 'environment':
      return fillHtml('Locked: set by the environment variable {variable}. Change it there.', {
        variable: html`<code>${lock.variable}</code>`,
      })
    case 'kept':
      return 'Security setting: can only be changed in the configuration file.'
    case 'read-only': {
      const paths = html`<code>${lock.paths.join(', ')}</code>`
      if (row.origin.by === 'file')
        return html`Locked: set in ${paths}, which the server cannot write. Change it there.`
      return lock.paths.length === 0
        ? 'Locked: no configuration file is read.'
        : html`Locked: the server cannot write its configuration files (${paths}).`
    }
  }
}

const renderHelp = (text: string): Content =>
  text.split('`').map((part, at) => (at % 2 === 0 ? part : html`<code>${part}</code>`))

interface Group {
  readonly title: string
  readonly topics: Readonly<Record<string, string>>
}

const GROUPS = Object.entries<Group>(SETTING_GROUPS)

interface LineCards {
  readonly first: Content
  /** The settings in front, inside the form; null: the line has all of them in the groups. */
  readonly front: Content
  readonly last: Content
}

export interface SettingsView {
  readonly rows: readonly ShownSetting[]
  readonly refusals: Refusals
  readonly search: Search
  /** By dotted name, saved by the form that led here. */
  readonly saved: ReadonlySet<string>
  readonly paths: EditPaths
}

export async function showSettings(
  context: PageContext,
  renderCards: (view: SettingsView) => Promise<LineCards>,
): Promise<Answer> {
  const { config } = context.services
  const rows = config.list()
  const refusals = readRefusals(context)
  const search = createSearch(context.query.get('q') ?? '')
  const saved = findSaved(context) === null ? NO_NAMES : readSavedNames(context.query)
  const view = { rows, search, refusals, saved, paths: await config.listEditPaths() }
  const { first, front, last } = await renderCards(view)
  return await context.show({
    title: 'Settings',
    learn: 'settings.html',
    messages: html`${renderOutcome(context, view)}${renderProblems(context)}`,
    body: html`${renderSearch(search.text)}
      <div id="settings">${first} ${renderForm(view, front)} ${last}</div>
      <div class="nothing" role="status">
        ${emptyState('No matching settings', 'Remove a term or clear the search.', html`<a class="button" href="${SETTINGS_PATH}">Show all settings</a>`)}
      </div>`,
  })
}

type Search = ReturnType<typeof createSearch>

/** As `flasher.js` filters: each word must be in the keywords. */
function createSearch(given: string) {
  const text = given.slice(0, MAX_SEARCH)
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .map((word) => word.replace(/^flasher_/, ''))
  const finds = (keywords: string) => words.every((word) => keywords.toLowerCase().includes(word))
  return {
    text,
    finds,
    isEmpty: text.trim() === '',
    /** `flasher.js` keeps it up to date. */
    field: html`<input${attributes({ type: 'hidden', name: SEARCH_FIELD, value: text, 'data-search': '' })} />`,
    wrap: (keywords: string, content: Html): Html =>
      html`<div${attributes({ 'data-keywords': keywords, hidden: !finds(keywords) })}>${content}</div>`,
    fold: (
      keywords: string,
      part: Pick<Parameters<typeof renderFold>[0], 'title' | 'id' | 'about' | 'aside' | 'body'>,
    ) =>
      renderFold({
        ...part,
        keywords,
        isOpen: false,
        isFound: text.trim() !== '' && finds(keywords),
        isHidden: !finds(keywords),
      }),
  }
}

const renderSearch = (text: string): Html =>
  html`<div class="tools">
    <form class="search" role="search" action="${SETTINGS_PATH}">
      ${searchField({ name: 'q', value: text, label: 'Search settings', placeholder: 'Port, time zone, backups…', filter: '#settings' })}
      <button>${icon('search')}Search</button>
    </form>
  </div>`

/** Enter presses the first button of a form, which must not remove a key. */
export const FIRST_BUTTON = trusted('<button hidden></button>')

/** One form: no button loses what was typed. */
const renderForm = (view: SettingsView, front: Content): Html =>
  html`<form
    method="post"
    action="${SETTINGS_PATH}/config"
    id="configuration-files"
    class="careful"
    autocomplete="off"
    ${attributes({ 'data-dirty': view.refusals.size > 0 })}
  >
    ${FIRST_BUTTON} ${view.search.field} ${front}
    ${front === null ? renderGroups(view, view.rows) : renderRest(view)} ${renderSave(view)}
  </form>`

const renderGroups = (view: SettingsView, rows: readonly ShownSetting[]): Content =>
  GROUPS.map(([id, group]) => renderGroup(id, group, { ...view, rows }))

function renderRest(view: SettingsView): Html {
  const rest = view.rows.filter(({ setting: { front, topic } }) => front === null && topic !== null)
  return foldedCard({
    title: 'All settings',
    id: 'more',
    about: `${rest.length} more`,
    isOpen: isOpenFor(view, rest) || isFoundIn(view, rest, ''),
    body: renderGroups(view, rest),
  })
}

function renderSave({ paths: { paths, writable }, rows }: SettingsView): Html {
  const [file] = writable
  // Settings of cards are saved in the database, even if no file can be written.
  if (file === undefined && !rows.some(({ setting }) => setting.card !== null)) return NOTHING
  const words =
    paths.length === 1
      ? 'Changes are written to {path}.'
      : 'Changes are written to the file that holds the setting, else to {path}.'
  return html`<div class="save">
    <button class="primary">Save changes</button>
    ${
      file === undefined
        ? null
        : html`<p class="small dim">${fillHtml(words, { path: html`<code>${file}</code>` })}</p>`
    }
  </div>`
}

function renderGroup(id: string, { title, topics }: Group, view: SettingsView): Content {
  const parts = listTopics(topics, view.rows)
  if (parts.length === 0) return null
  return card({
    title,
    id,
    body: parts.map(([topic, heading, those]) =>
      foldRows(view, heading, `settings-${topic}`, those, title),
    ),
  })
}

const isOpenFor = ({ saved, refusals }: SettingsView, rows: readonly ShownSetting[]): boolean =>
  rows.some(({ name }) => saved.has(name) || refusals.has(name))

const isFoundIn = (
  { search }: SettingsView,
  rows: readonly ShownSetting[],
  topic: string,
): boolean => !search.isEmpty && rows.some((row) => search.finds(keywordsOf(row, topic)))

/** Open where something in it was found, saved or refused. */
function foldRows(
  view: SettingsView,
  title: string,
  id: string,
  rows: readonly ShownSetting[],
  group: string,
): Html {
  const topic = `${group} ${title}`
  const changed = rows.filter(({ origin }) => origin.by !== 'default').length
  return renderFold({
    title,
    id,
    about: rows.map(({ setting }) => setting.title).join(', '),
    aside:
      changed === 0
        ? null
        : html`<span class="tag"
            >${fillCount({ one: '1 changed', other: '{count} changed' }, changed)}</span
          >`,
    isOpen: isOpenFor(view, rows),
    isFound: isFoundIn(view, rows, topic),
    body: renderRows(view, rows, topic),
  })
}

const renderRows = (view: SettingsView, rows: readonly ShownSetting[], topic: string): Html =>
  html`<ul class="settings">
    ${rows.map((row) => renderSetting(row, view, topic))}
  </ul>`

/** For a page that shows a few of them. */
export const renderFew = (
  view: Pick<SettingsView, 'paths' | 'refusals'>,
  rows: readonly ShownSetting[],
): Html => renderRows({ ...view, rows, search: createSearch(''), saved: NO_NAMES }, rows, '')

/** The settings in front of one job, and what else belongs to it; `words`: further ones that find it. */
export function renderJob(
  view: SettingsView,
  job: SettingJob,
  words = '',
  after: Content = null,
  aside: Content = null,
): Html {
  const rows = view.rows.filter(({ setting }) => setting.front === job)
  return html`<section class="job" id="${job}">
    <header>
      <h2>${SETTING_JOBS[job]}</h2>
      ${aside}
    </header>
    <div>${renderRows(view, rows, `${SETTING_JOBS[job]} ${words}`)}${after}</div>
  </section>`
}

const listTopics = (topics: Group['topics'], rows: readonly ShownSetting[]) =>
  Object.entries(topics)
    .map(
      ([topic, heading]) =>
        [topic, heading, rows.filter(({ setting }) => setting.topic === topic)] as const,
    )
    .filter(([, , those]) => those.length > 0)

export function readRefusals(context: PageContext): Refusals {
  const { errors = {}, typed = {} } = context.notice() ?? {}
  return new Map(
    [...new Set([...Object.keys(typed), ...Object.keys(errors)])].map((name) => [
      name,
      { text: typed[name] ?? '', error: errors[name] ?? null },
    ]),
  )
}

const SETTINGS_SAVED = {
  upstream: 'Saved and in effect.',
  backup: 'Schedule saved. Takes effect within a minute.',
  config: 'Saved in the configuration file and in effect.',
  restart: 'Saved in the configuration file. Takes effect after a restart.',
  unchanged: 'No setting was changed.',
} as const

const SAVED: Readonly<Record<string, string>> = SETTINGS_SAVED
const NO_NAMES: ReadonlySet<string> = new Set()

/** What the form that led here says of its end; null: none did. */
export function findSaved({ query }: PageContext): string | null {
  const saved = query.get('saved') ?? ''
  return Object.hasOwn(SAVED, saved) ? (SAVED[saved] ?? null) : null
}

function renderOutcome(context: PageContext, { rows, refusals }: SettingsView): Content {
  const saved = findSaved(context)
  if (saved !== null) return banner('done', saved)
  const refused = [...refusals].filter(([, { error }]) => error !== null)
  if (refused.length === 0) return context.message()
  return banner(
    'failed',
    html`Nothing was saved. What is wrong:
      <ul>
        ${refused.map(([name, { error }]) => {
          const title = findRow(rows, name)?.setting.title ?? name
          return html`<li><a href="#${name}">${title}</a>: ${error}</li>`
        })}
      </ul>`,
  )
}

function renderProblems({ services }: PageContext): Content {
  const problems = services.config.problems()
  if (problems.length === 0) return null
  return banner(
    'needs-you',
    html`Some of the configuration is invalid:
      <ul>
        ${problems.slice(0, 8).map(({ where, message }) => html`<li><code>${where}</code> ${message}</li>`)}
      </ul>`,
  )
}

export const findRow = (rows: readonly ShownSetting[], name: string): ShownSetting | undefined =>
  rows.find((row) => row.name === name)

// Where the forms of the settings page lead: to the row that was changed, with the search that found it.

export const SETTINGS_PATH = '/ui/settings'

/** Programs that post to the page send none. */
export const SEARCH_FIELD = 'q'
const MAX_SEARCH = 200

type SavedWord = keyof typeof SETTINGS_SAVED

interface SavedPost {
  readonly saved: SavedWord
  /** Dotted. */
  readonly names: readonly string[]
  /** Null: the top of the page. */
  readonly anchor: string | null
  /** For programs, as the deployed server sends it; undefined: `anchor`. */
  readonly plainAnchor?: string | null
}

/** With the search and *Saved* for a form of the page; for programs, the same address as ever. */
export function savedAddress(
  form: URLSearchParams,
  { saved, names, anchor, plainAnchor = anchor }: SavedPost,
  path = SETTINGS_PATH,
): string {
  const isPage = form.has(SEARCH_FIELD)
  const query = isPage ? { saved, at: names.join(' '), ...searchOf(form) } : { saved }
  const at = isPage ? anchor : plainAnchor
  if (path !== SETTINGS_PATH) return address(path, { saved })
  const page = address(path, query)
  return at === null ? page : `${page}#${at}`
}

export const searchOf = (form: URLSearchParams): { readonly q: string | null } => ({
  q: form.get(SEARCH_FIELD)?.slice(0, MAX_SEARCH) ?? null,
})

/** Unknown names are ignored. */
const readSavedNames = (query: URLSearchParams): ReadonlySet<string> =>
  new Set((query.get('at') ?? '').split(' ').filter((name) => name !== ''))

/** A part of the settings page that is folded until somebody opens it, a link leads into it, or the search finds something in it. */
interface Fold {
  readonly title: string
  /** A link's target, inside because browsers open what holds it. */
  readonly id: string
  readonly about?: Content
  readonly aside?: Content
  readonly isOpen: boolean
  /** Opened by the search, and folded again when that is cleared. */
  readonly isFound: boolean
  /** For a part that is found as a whole. */
  readonly keywords?: string
  readonly isHidden?: boolean
  readonly body: Content
}

/** Its title line opens it without a script. */
const renderFold = (fold: Fold): Html =>
  html`<details
    class="fold"
    ${attributes({
      open: fold.isOpen || fold.isFound,
      'data-found': fold.isFound ? '' : null,
      'data-keywords': fold.keywords ?? null,
      hidden: fold.isHidden === true,
    })}
  >
    <summary>
      <h3>${fold.title}</h3>
      ${fold.about === undefined ? null : html`<span class="holds small dim">${fold.about}</span>`}
      ${fold.aside}
    </summary>
    <div id="${fold.id}" class="folded">${fold.body}</div>
  </details>`
