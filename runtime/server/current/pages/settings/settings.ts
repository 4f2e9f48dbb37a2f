/** /ui/settings: every setting with its source and a search, the forms that change them, and the DHCP options. */
import type { HTTPResponse } from 'h3'
import type { SkippedEntry } from '../../../../engine/catalog/rules/catalog.ts'
import type { EditPaths, ShownSetting } from '../../../../kit/config/rules/shown-setting.ts'
import {
  badge,
  banner,
  card,
  emptyState,
  factList,
  icon,
  renderTabs,
} from '../../../../kit/web/ui/elements.ts'
import { hidden, postButton, selectField, textField } from '../../../../kit/web/ui/fields.ts'
import {
  attributes,
  fillHtml,
  html,
  NOTHING,
  trusted,
  type Content,
  type Html,
} from '../../../../kit/web/ui/html.ts'
import { searchField } from '../../../../kit/web/ui/search.ts'
import { renderTime } from '../../../../kit/web/ui/times.ts'
import { pageAt } from '../frame/context-routes.ts'
import type { PageContext } from '../frame/page-context.ts'
import { renderDhcp } from './dhcp-cheatsheet.ts'
import { findTexts, SETTING_TEXTS, titleOf } from './setting-texts.ts'
import { keywordsOf, renderSetting, type Refusals } from './settings-rows.ts'
import { SETTINGS_POSTS } from './settings-posts.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill, fillCount } from '../../../../kit/texts/text.ts'

const t = PAGES.settings

const PATH = '/ui/settings'

interface Group {
  readonly title: string
  readonly topics: Readonly<Record<string, string>>
}

const GROUPS = Object.entries<Group>(SETTING_TEXTS.groups)

const TABS = [
  [t.cache.title, '#ramboot'],
  [t.release.title, '#netboot-release'],
  [t.backup.title, '#backup-schedule'],
  ...GROUPS.map(([id, { title }]) => [title, `#${id}`] as const),
  [t.tabs.dhcp, '#dhcp-pxe'],
] as const

export const SETTINGS_PAGES = [pageAt(PATH, show), ...SETTINGS_POSTS]

async function show(context: PageContext): Promise<HTTPResponse> {
  const { config } = context.services
  const rows = config.list()
  const refusals = readRefusals(context)
  const search = createSearch(context.query.get('q') ?? '')
  const view = { rows, search, refusals, paths: await config.listEditPaths() }
  return await context.show({
    title: PAGES.frame.titles.settings,
    section: PATH,
    messages: html`${renderOutcome(context, refusals)}${renderProblems(context)}`,
    body: html`${renderSearch(search.text)} ${renderTabs(TABS)}
      <div id="settings">
        <div class="columns">
          <div>
            ${search.wrap(t.keywords.cache, renderCache(context, rows, refusals))}
            ${search.wrap(t.keywords.release, renderRelease(rows, refusals))}
          </div>
          <div>${search.wrap(t.keywords.backup, renderBackup(rows, refusals))}</div>
        </div>
        ${renderConfig(view)} ${search.wrap(t.keywords.dhcp, await renderDhcp(context))}
      </div>
      <div class="nothing" role="status">
        ${emptyState(t.empty.title, t.empty.text, html`<a class="button" href="${PATH}">${t.empty.all}</a>`)}
      </div>`,
  })
}

type Search = ReturnType<typeof createSearch>

const MAX_SEARCH = 200

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
    wrap: (keywords: string, content: Html): Html =>
      html`<div${attributes({ 'data-keywords': keywords, hidden: !finds(keywords) })}>${content}</div>`,
  }
}

const renderSearch = (text: string): Html =>
  html`<div class="tools">
    <form class="search" role="search" action="${PATH}">
      ${searchField({ name: 'q', value: text, label: t.search.label, placeholder: t.search.placeholder, filter: '#settings' })}
      <button>${icon('search')}${t.search.button}</button>
    </form>
  </div>`

interface ConfigView {
  readonly rows: readonly ShownSetting[]
  readonly search: Search
  readonly refusals: Refusals
  readonly paths: EditPaths
}

/** Enter in a field presses the first button of a form, which must not be one that removes a key. */
const FIRST_BUTTON = trusted('<button hidden></button>')

/** One form: whichever button is pressed, nothing that was typed is lost. */
const renderConfig = (view: ConfigView): Html =>
  html`<form
    method="post"
    action="${PATH}/config"
    id="configuration-files"
    class="careful"
    autocomplete="off"
    ${attributes({ 'data-dirty': isEdited(view) })}
  >
    ${FIRST_BUTTON} ${GROUPS.map(([id, group]) => renderGroup(id, group, view))}
    ${renderSave(view.paths)}
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
  { rows, search, refusals, paths }: ConfigView,
): Html =>
  card({
    title,
    id,
    body: html`${Object.entries(topics).map(([topic, heading]) => {
      const those = rows.filter(({ setting }) => setting.topic === topic)
      if (those.length === 0) return null
      return html`<section class="topic">
        <h3>${heading}</h3>
        <ul class="settings">
          ${those.map((row) => {
            const keywords = keywordsOf(row, `${title} ${heading}`)
            const isHidden = !search.finds(keywords)
            return renderSetting(row, { paths, refusals, keywords, isHidden })
          })}
        </ul>
      </section>`
    })}`,
  })

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

function renderOutcome(context: PageContext, refusals: Refusals): Content {
  const saved = context.query.get('saved') ?? ''
  if (Object.hasOwn(SAVED, saved)) return banner('done', SAVED[saved])
  const refused = [...refusals].filter(([, { error }]) => error !== null)
  if (refused.length === 0) return context.message()
  return banner(
    'failed',
    html`${t.refused}
      <ul>
        ${refused.map(
          ([name, { error }]) => html`<li><a href="#${name}">${titleOf(name)}</a>: ${error}</li>`,
        )}
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

const find = (rows: readonly ShownSetting[], name: string) => rows.find((row) => row.name === name)

function renderCache(
  context: PageContext,
  rows: readonly ShownSetting[],
  refusals: Refusals,
): Html {
  const { entries, skipped, fetchedAt, error } = context.site.catalog.snapshot()
  const row = find(rows, 'withcache.url')
  return card({
    title: t.cache.title,
    id: 'ramboot',
    aside:
      error === null
        ? badge('done', fillCount(t.cache.images, entries.length))
        : badge('needs-you', t.cache.unavailable),
    body: html`
      <p class="dim">${t.cache.text}</p>
      <form method="post" action="/ui/settings/upstream">
        ${upstreamField(row, { name: 'catalog_url', label: t.cache.address }, refusals)}
        ${row?.origin.by === 'environment' ? null : html`<button>${t.cache.button}</button>`}
      </form>
      ${factList([
        [t.cache.read, renderTime(fetchedAt, context.clock(), t.cache.never)],
        [t.cache.error, error === null ? null : html`<span class="warning">${error}</span>`],
        [t.cache.skipped, skipped.length === 0 ? null : renderSkipped(skipped)],
      ])}
      ${postButton({ action: '/admin/cache/refresh', label: t.cache.refresh })}
    `,
  })
}

/** A broken catalog can skip thousands. */
const MAX_SKIPPED = 20

const renderSkipped = (skipped: readonly SkippedEntry[]): Html =>
  html`${skipped
    .slice(0, MAX_SKIPPED)
    .map(({ name, reason }) => html`<div>${fill(t.cache.skippedEntry, { name, reason })}</div>`)}
  ${skipped.length > MAX_SKIPPED ? html`<div>${fill(t.cache.more, { count: skipped.length - MAX_SKIPPED })}</div>` : null}`

const renderRelease = (rows: readonly ShownSetting[], refusals: Refusals): Html =>
  card({
    title: t.release.title,
    id: 'netboot-release',
    aside: html`<a class="small" href="/ui/netboot#install">${t.release.link}</a>`,
    body: html`<p class="dim">${t.release.text}</p>
      <form method="post" action="/ui/settings/upstream">
        ${upstreamField(
          find(rows, 'boot.release_repo'),
          { name: 'netboot_repo', label: t.release.repository, placeholder: 'owner/name' },
          refusals,
        )}
        ${upstreamField(
          find(rows, 'boot.release_tag'),
          { name: 'netboot_tag', label: t.release.tag, hint: t.release.tagHint },
          refusals,
        )}
        <button>${t.release.button}</button>
      </form>`,
  })

/** No backups at all and a schedule without an interval are the same to a person: one choice. */
function renderBackup(rows: readonly ShownSetting[], refusals: Refusals): Html {
  const isOn = find(rows, 'backup.enabled')?.value === true
  const kept = isOn ? find(rows, 'backup.cadence')?.value : 'manual'
  const cadence = findTexts('backup.cadence')
  return card({
    title: t.backup.title,
    id: 'backup-schedule',
    aside: html`<a class="small" href="/ui/backups">${t.backup.link}</a>`,
    body: html`<form method="post" action="/ui/settings/backup">
      ${hidden({ backup_enabled: 'on' })}
      ${selectField({
        name: 'backup_cadence',
        label: t.backup.cadence,
        value: refusals.get('backup.cadence')?.text ?? String(kept),
        error: refusals.get('backup.cadence')?.error ?? null,
        options: Object.entries(cadence?.labels ?? {}).map(([value, text]) => ({ value, text })),
      })}
      ${renderRetention(find(rows, 'backup.retention'), refusals)}
      <button>${t.backup.button}</button>
    </form>`,
  })
}

function renderRetention(row: ShownSetting | undefined, refusals: Refusals): Content {
  const field = row?.setting.field
  if (row === undefined || field?.as !== 'number') return null
  const refused = refusals.get(row.name)
  return textField({
    name: 'backup_retention_count',
    label: titleOf(row.name),
    type: 'number',
    value: refused?.text ?? row.setting.toField(row.value),
    min: field.least,
    max: field.most,
    required: true,
    hint: t.backup.retentionHint,
    error: refused?.error ?? null,
  })
}

/** Saved by this page; only the environment has precedence. */
function upstreamField(
  row: ShownSetting | undefined,
  { name, label, hint, placeholder = row?.shown ?? '' }: UpstreamField,
  refusals: Refusals,
): Content {
  if (row === undefined) return null
  if (row.origin.by === 'environment') {
    return factList([
      [
        label,
        html`<strong>${row.shown}</strong>
          <span class="small dim"
            >${fillHtml(t.upstreamEnvironment, { variable: html`<code>${row.origin.variable}</code>` })}</span
          >`,
      ],
    ])
  }
  const typed = refusals.get(row.name) ?? { text: row.text, error: null }
  return textField({
    name,
    label,
    value: typed.text,
    error: typed.error,
    placeholder,
    hint: hint === undefined ? t.upstreamHint : `${hint} ${t.upstreamHint}`,
  })
}

interface UpstreamField {
  readonly name: string
  readonly label: string
  readonly hint?: string
  readonly placeholder?: string
}
