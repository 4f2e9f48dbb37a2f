/** /ui/settings: every setting with its source and a search, the forms that change them, and the DHCP options. */
import type { HTTPResponse } from 'h3'
import type { SkippedEntry } from '../../../../engine/catalog/rules/catalog.ts'
import type { ShownSetting } from '../../../../kit/config/rules/shown-setting.ts'
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
import { attributes, fillHtml, html, type Content, type Html } from '../../../../kit/web/ui/html.ts'
import { searchField } from '../../../../kit/web/ui/search.ts'
import { renderTime } from '../../../../kit/web/ui/times.ts'
import { pageAt } from '../frame/context-routes.ts'
import type { PageContext } from '../frame/page-context.ts'
import { renderDhcp } from './dhcp-cheatsheet.ts'
import { SETTING_GROUPS } from './setting-titles.ts'
import { keywordsOf, nameOf, renderSetting, titleOf, type Refused } from './settings-rows.ts'
import { SETTINGS_POSTS } from './settings-posts.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill, fillCount } from '../../../../kit/texts/text.ts'

const t = PAGES.settings

const PATH = '/ui/settings'

const TABS = [
  [t.cache.title, '#ramboot'],
  [t.release.title, '#netboot-release'],
  [t.backup.title, '#backup-schedule'],
  ...SETTING_GROUPS.map(({ title, id }) => [title, `#${id}`] as const),
  [t.tabs.dhcp, '#dhcp-pxe'],
] as const

export const SETTINGS_PAGES = [pageAt(PATH, show), ...SETTINGS_POSTS]

async function show(context: PageContext): Promise<HTTPResponse> {
  const { config } = context.services
  const rows = config.list()
  const refused = readRefused(context)
  const search = createSearch(context.query.get('q') ?? '')
  return await context.show({
    title: PAGES.frame.titles.settings,
    section: PATH,
    messages: html`${renderOutcome(context, refused)}${renderProblems(context)}`,
    body: html`${renderSearch(search.text)} ${renderTabs(TABS)}
      <div id="settings">
        <div class="columns">
          <div>
            ${search.wrap(t.keywords.cache, renderCache(context, rows, refused))}
            ${search.wrap(t.keywords.release, renderRelease(rows, refused))}
          </div>
          <div>${search.wrap(t.keywords.backup, renderBackup(context))}</div>
        </div>
        ${SETTING_GROUPS.map((group) => renderGroup(group, rows, search, refused))}
        ${search.wrap(t.keywords.dhcp, await renderDhcp(context))}
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

const renderGroup = (
  { title, id, topics }: (typeof SETTING_GROUPS)[number],
  rows: readonly ShownSetting[],
  search: Search,
  refused: Refused | null,
): Html =>
  card({
    title,
    id,
    body: html`${topics.map(
      (topic) =>
        html`<section class="topic">
          <h3>${topic.title}</h3>
          <ul class="settings">
            ${topic.names.map((name) => {
              const row = find(rows, name)
              if (row === undefined) return null
              const keywords = keywordsOf(row, `${title} ${topic.title}`)
              return renderSetting(row, { refused, keywords, isHidden: !search.finds(keywords) })
            })}
          </ul>
        </section>`,
    )}`,
  })

/** After a refusal: which setting, what was typed, and why it was refused. */
function readRefused(context: PageContext): Refused | null {
  const notice = context.notice()
  const name = notice?.typed['at']
  if (notice === null || name === undefined) return null
  return { name, error: notice.error, text: notice.typed['value'] ?? '' }
}

const SAVED: Readonly<Record<string, string>> = t.saved

function renderOutcome(context: PageContext, refused: Refused | null): Content {
  const saved = context.query.get('saved') ?? ''
  if (Object.hasOwn(SAVED, saved)) return banner('done', SAVED[saved])
  if (refused === null) return context.message()
  return banner(
    'failed',
    fillHtml(t.refused, {
      setting: html`<a href="#${refused.name}">${titleOf(refused.name)}</a>`,
      error: refused.error,
    }),
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

const find = (rows: readonly ShownSetting[], name: string) =>
  rows.find((row) => nameOf(row) === name)

function renderCache(
  context: PageContext,
  rows: readonly ShownSetting[],
  refused: Refused | null,
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
        ${upstreamField(row, { name: 'catalog_url', label: t.cache.address }, refused)}
        ${row?.isLocked === true ? null : html`<button>${t.cache.button}</button>`}
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

const renderRelease = (rows: readonly ShownSetting[], refused: Refused | null): Html =>
  card({
    title: t.release.title,
    id: 'netboot-release',
    aside: html`<a class="small" href="/ui/netboot#install">${t.release.link}</a>`,
    body: html`<p class="dim">${t.release.text}</p>
      <form method="post" action="/ui/settings/upstream">
        ${upstreamField(
          find(rows, 'boot.release_repo'),
          { name: 'netboot_repo', label: t.release.repository, placeholder: 'owner/name' },
          refused,
        )}
        ${upstreamField(
          find(rows, 'boot.release_tag'),
          { name: 'netboot_tag', label: t.release.tag, hint: t.release.tagHint },
          refused,
        )}
        <button>${t.release.button}</button>
      </form>`,
  })

/** No backups at all and a schedule without an interval are the same to a person: one choice. */
function renderBackup({ services }: PageContext): Html {
  const { enabled, cadence, retention } = services.config.current().backup
  return card({
    title: t.backup.title,
    id: 'backup-schedule',
    aside: html`<a class="small" href="/ui/backups">${t.backup.link}</a>`,
    body: html`<form method="post" action="/ui/settings/backup">
      ${hidden({ backup_enabled: 'on' })}
      ${selectField({
        name: 'backup_cadence',
        label: t.backup.cadence,
        value: enabled ? cadence : 'manual',
        options: Object.entries(t.backup.cadences).map(([value, text]) => ({ value, text })),
      })}
      ${textField({ name: 'backup_retention_count', label: t.backup.retention, type: 'number', value: String(retention), min: 1, max: 10_000, required: true, hint: t.backup.retentionHint })}
      <button>${t.backup.button}</button>
    </form>`,
  })
}

/** Saved by this page; only the environment has precedence. */
function upstreamField(
  row: ShownSetting | undefined,
  { name, label, hint, placeholder = row?.shown ?? '' }: UpstreamField,
  refused: Refused | null,
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
  const typed = refused?.name === nameOf(row) ? refused : { text: row.text, error: null }
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
