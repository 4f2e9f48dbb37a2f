/** The settings page of both lines: every setting with its source, a search, and one form for the configuration files. */
import type { EditPaths, ShownSetting } from '#kit/config/rules/shown-setting.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { banner, card, emptyState, icon } from '#kit/web/ui/elements.ts'
import {
  attributes,
  fillHtml,
  html,
  NOTHING,
  trusted,
  type Content,
  type Html,
} from '#kit/web/ui/html.ts'
import { searchField } from '#kit/web/ui/search.ts'
import { fillCount } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { PageContext } from '../page-context.ts'
import { MAX_SEARCH, readSavedNames, SEARCH_FIELD, SETTINGS_PATH } from './after-post.ts'
import { GROUP_TEXTS, translateRows } from './setting-texts.ts'
import { renderFold } from './settings-fold.ts'
import { keywordsOf, renderSetting, type Refusals } from './settings-rows.ts'

const t = PAGES.settings

interface Group {
  readonly title: string
  readonly topics: Readonly<Record<string, string>>
}

const GROUPS = Object.entries<Group>(GROUP_TEXTS)

interface LineCards {
  readonly first: Content
  /** Inside the form of the settings. */
  readonly fields: Content
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
  const { config, settingTexts } = context.services
  const rows = translateRows(config.list(), settingTexts)
  const refusals = readRefusals(context)
  const search = createSearch(context.query.get('q') ?? '')
  const saved = findSaved(context) === null ? NO_NAMES : readSavedNames(context.query)
  const view = { rows, search, refusals, saved, paths: await config.listEditPaths() }
  const { first, fields, last } = await renderCards(view)
  return await context.show({
    title: PAGES.frame.titles.settings,
    section: SETTINGS_PATH,
    messages: html`${renderOutcome(context, view)}${renderProblems(context)}`,
    body: html`${renderSearch(search.text)}
      <div id="settings">${first} ${renderForm(view, fields)} ${last}</div>
      <div class="nothing" role="status">
        ${emptyState(t.empty.title, t.empty.text, html`<a class="button" href="${SETTINGS_PATH}">${t.empty.all}</a>`)}
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
      ${searchField({ name: 'q', value: text, label: t.search.label, placeholder: t.search.placeholder, filter: '#settings' })}
      <button>${icon('search')}${t.search.button}</button>
    </form>
  </div>`

/** Enter presses the first button of a form, which must not remove a key. */
const FIRST_BUTTON = trusted('<button hidden></button>')

/** One form: no button loses what was typed. */
const renderForm = (view: SettingsView, fields: Content): Html =>
  html`<form
    method="post"
    action="${SETTINGS_PATH}/config"
    id="configuration-files"
    class="careful"
    autocomplete="off"
    ${attributes({ 'data-dirty': view.refusals.size > 0 })}
  >
    ${FIRST_BUTTON} ${view.search.field} ${fields}
    ${GROUPS.map(([id, group]) => renderGroup(id, group, view))} ${renderSave(view)}
  </form>`

function renderSave({ paths: { paths, writable }, rows }: SettingsView): Html {
  const [file] = writable
  // Settings of cards are saved in the database, even if no file can be written.
  if (file === undefined && !rows.some(({ setting }) => setting.card !== null)) return NOTHING
  const words = paths.length === 1 ? t.save.file : t.save.files
  return html`<div class="save">
    <button class="primary">${t.save.button}</button>
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
      foldRows(view, { title: heading, id: `settings-${topic}`, rows: those, group: title }),
    ),
  })
}

interface RowsFold {
  readonly title: string
  readonly id: string
  readonly rows: readonly ShownSetting[]
  readonly group: string
  readonly aside?: Content
  readonly before?: Content
  readonly after?: Content
}

/** Open where something in it was found, saved or refused. */
export function foldRows(view: SettingsView, part: RowsFold): Html {
  const { search, refusals, saved, paths } = view
  const shown = part.rows.map((row) => {
    const keywords = keywordsOf(row, `${part.group} ${part.title}`)
    return { row, keywords, isHidden: !search.finds(keywords), isSaved: saved.has(row.name) }
  })
  const changed = part.rows.filter(({ origin }) => origin.by !== 'default').length
  return renderFold({
    title: part.title,
    id: part.id,
    about: part.rows.map(({ setting }) => setting.title).join(', '),
    aside:
      part.aside ??
      (changed === 0 ? null : html`<span class="tag">${fillCount(t.changed, changed)}</span>`),
    isOpen: shown.some(({ row: { name }, isSaved }) => isSaved || refusals.has(name)),
    isFound: !search.isEmpty && shown.some(({ isHidden }) => !isHidden),
    body: html`${part.before}
      <ul class="settings">
        ${shown.map(({ row, ...how }) => renderSetting(row, { paths, refusals, ...how }))}
      </ul>
      ${part.after}`,
  })
}

/** Without settings of the line's cards. */
const listTopics = (topics: Group['topics'], rows: readonly ShownSetting[]) =>
  Object.entries(topics)
    .map(
      ([topic, heading]) =>
        [
          topic,
          heading,
          rows.filter(({ setting }) => setting.topic === topic && setting.card === null),
        ] as const,
    )
    .filter(([, , those]) => those.length > 0)

function readRefusals(context: PageContext): Refusals {
  const { errors = {}, typed = {} } = context.notice() ?? {}
  return new Map(
    [...new Set([...Object.keys(typed), ...Object.keys(errors)])].map((name) => [
      name,
      { text: typed[name] ?? '', error: errors[name] ?? null },
    ]),
  )
}

const SAVED: Readonly<Record<string, string>> = t.saved
const NO_NAMES: ReadonlySet<string> = new Set()

function findSaved({ query }: PageContext): string | null {
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
    html`${t.refused}
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
    html`${t.problems}
      <ul>
        ${problems.slice(0, 8).map(({ where, message }) => html`<li><code>${where}</code> ${message}</li>`)}
      </ul>`,
  )
}

export const findRow = (rows: readonly ShownSetting[], name: string): ShownSetting | undefined =>
  rows.find((row) => row.name === name)
