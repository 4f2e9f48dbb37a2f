/** The settings page of both lines: every setting with its source, a search, and one form for the configuration files. */
import type { EditPaths, ShownSetting } from '../../../kit/config/rules/shown-setting.ts'
import type { Answer } from '../../../kit/web/answers/answers.ts'
import { banner, card, emptyState, icon, renderTabs } from '../../../kit/web/ui/elements.ts'
import {
  attributes,
  fillHtml,
  html,
  NOTHING,
  trusted,
  type Content,
  type Html,
} from '../../../kit/web/ui/html.ts'
import { searchField } from '../../../kit/web/ui/search.ts'
import { PAGES } from '../../texts/texts.ts'
import type { PageContext } from '../page-context.ts'
import { MAX_SEARCH, readSavedNames, SEARCH_FIELD, SETTINGS_PATH } from './after-post.ts'
import { GROUP_TEXTS, translateRows } from './setting-texts.ts'
import { keywordsOf, renderSetting, type Refusals } from './settings-rows.ts'

const t = PAGES.settings

interface Group {
  readonly title: string
  readonly topics: Readonly<Record<string, string>>
}

const GROUPS = Object.entries<Group>(GROUP_TEXTS)

/** A link to a card of the page: its title and its anchor. */
type Tab = readonly [title: string, anchor: `#${string}`]

/** What a line adds to the page. */
interface LineCards {
  /** The cards above the settings. */
  readonly first: { readonly tabs: readonly Tab[]; readonly content: Content }
  /** Those below them. */
  readonly last: { readonly tabs: readonly Tab[]; readonly content: Content }
}

/** What the cards of a line are rendered from. */
export interface SettingsView {
  /** The settings, in the language in use. */
  readonly rows: readonly ShownSetting[]
  readonly refusals: Refusals
  readonly search: Search
  /** The dotted names of those that the form which led here has saved. */
  readonly saved: ReadonlySet<string>
}

/** Shows the page; `renderCards` renders what only this line has. */
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
  const { first, last } = await renderCards(view)
  const groups = GROUPS.filter(([, { topics }]) => listTopics(topics, rows).length > 0)
  const tabs = groups.map(([id, { title }]): Tab => [title, `#${id}`])
  return await context.show({
    title: PAGES.frame.titles.settings,
    section: SETTINGS_PATH,
    messages: html`${renderOutcome(context, view)}${renderProblems(context)}`,
    body: html`${renderSearch(search.text)} ${renderTabs([...first.tabs, ...tabs, ...last.tabs])}
      <div id="settings">${first.content} ${renderConfig(view, groups)} ${last.content}</div>
      <div class="nothing" role="status">
        ${emptyState(t.empty.title, t.empty.text, html`<a class="button" href="${SETTINGS_PATH}">${t.empty.all}</a>`)}
      </div>`,
  })
}

type Search = ReturnType<typeof createSearch>

/** As `flasher.js` filters while somebody types: each word must be somewhere in the keywords. */
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
    /** What each form of the page sends along; `flasher.js` keeps it as the search is typed. */
    field: html`<input${attributes({ type: 'hidden', name: SEARCH_FIELD, value: text, 'data-search': '' })} />`,
    wrap: (keywords: string, content: Html): Html =>
      html`<div${attributes({ 'data-keywords': keywords, hidden: !finds(keywords) })}>${content}</div>`,
  }
}

const renderSearch = (text: string): Html =>
  html`<div class="tools">
    <form class="search" role="search" action="${SETTINGS_PATH}">
      ${searchField({ name: 'q', value: text, label: t.search.label, placeholder: t.search.placeholder, filter: '#settings' })}
      <button>${icon('search')}${t.search.button}</button>
    </form>
  </div>`

interface ConfigView extends SettingsView {
  readonly paths: EditPaths
}

/** Enter in a field presses the first button of a form, which must not be one that removes a key. */
const FIRST_BUTTON = trusted('<button hidden></button>')

/** One form: whichever button is pressed, nothing that was typed is lost. */
const renderConfig = (view: ConfigView, groups: typeof GROUPS): Html =>
  html`<form
    method="post"
    action="${SETTINGS_PATH}/config"
    id="configuration-files"
    class="careful"
    autocomplete="off"
    ${attributes({ 'data-dirty': isEdited(view) })}
  >
    ${FIRST_BUTTON} ${view.search.field}
    ${groups.map(([id, group]) => renderGroup(id, group, view))} ${renderSave(view.paths)}
  </form>`

/** What was typed is in the fields again, and not saved yet. */
const isEdited = ({ rows, refusals }: ConfigView): boolean =>
  rows.some(({ name, setting }) => setting.card === null && refusals.has(name))

function renderSave({ paths, writable }: EditPaths): Html {
  const [file] = writable
  if (file === undefined) return NOTHING
  return html`<div class="save">
    <button class="primary">${t.save.button}</button>
    <p class="small dim">
      ${fillHtml(paths.length === 1 ? t.save.file : t.save.files, { path: html`<code>${file}</code>` })}
    </p>
  </div>`
}

const renderGroup = (
  id: string,
  { title, topics }: Group,
  { rows, search, refusals, saved, paths }: ConfigView,
): Html =>
  card({
    title,
    id,
    body: html`${listTopics(topics, rows).map(
      ([heading, those]) =>
        html`<section class="topic">
          <h3>${heading}</h3>
          <ul class="settings">
            ${those.map((row) => {
              const keywords = keywordsOf(row, `${title} ${heading}`)
              const isHidden = !search.finds(keywords)
              const isSaved = saved.has(row.name)
              return renderSetting(row, { paths, refusals, keywords, isHidden, isSaved })
            })}
          </ul>
        </section>`,
    )}`,
  })

/** Returns the headings that have settings, each with them. */
const listTopics = (topics: Group['topics'], rows: readonly ShownSetting[]) =>
  Object.entries(topics)
    .map(
      ([topic, heading]) =>
        [heading, rows.filter(({ setting }) => setting.topic === topic)] as const,
    )
    .filter(([, those]) => those.length > 0)

/** After a refusal: what was typed into each field, and why those that were refused were. */
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

/** What the address says was saved, in words; null: nothing. */
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
          const setting = findRow(rows, name)?.setting
          return html`<li>
            <a href="#${setting?.card ?? name}">${setting?.title ?? name}</a>: ${error}
          </li>`
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

/** Finds a row by its dotted name. */
export const findRow = (rows: readonly ShownSetting[], name: string): ShownSetting | undefined =>
  rows.find((row) => row.name === name)
