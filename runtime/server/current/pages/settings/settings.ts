/** /ui/settings: what this line adds to the settings: the cards whose values are in the database, and the DHCP options. */
import type { Answer } from '../../../../kit/web/answers/answers.ts'
import type { SkippedEntry } from '../../../../engine/catalog/rules/catalog.ts'
import type { ShownSetting } from '../../../../kit/config/rules/shown-setting.ts'
import { badge, card, factList } from '../../../../kit/web/ui/elements.ts'
import { hidden, postButton, selectField, textField } from '../../../../kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html } from '../../../../kit/web/ui/html.ts'
import { renderTime } from '../../../../kit/web/ui/times.ts'
import { pageAt } from '../../../pages/context-routes.ts'
import { FILE_POSTS } from '../../../pages/settings/file-posts.ts'
import { SETTINGS_PATH } from '../../../pages/settings/after-post.ts'
import { findRow, showSettings, type SettingsView } from '../../../pages/settings/settings-list.ts'
import type { Refusals } from '../../../pages/settings/settings-rows.ts'
import { renderCurlBlock } from '../../../pages/curl-block.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { renderDhcp } from '../dhcp/dhcp.ts'
import { CARD_POSTS } from './card-posts.ts'
import { renderServers } from './servers-card.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill, fillCount } from '../../../../kit/texts/text.ts'

const t = PAGES.settings

export const SETTINGS_PAGES = [pageAt(SETTINGS_PATH, show), ...CARD_POSTS, ...FILE_POSTS]

async function show(context: CurrentContext): Promise<Answer> {
  return await showSettings(context, async (view) => ({
    first: {
      tabs: [
        ...(context.services.presence === null ? [] : [[t.servers.title, '#servers'] as const]),
        [t.cache.title, '#ramboot'],
        [t.release.title, '#netboot-release'],
        [t.backup.title, '#backup-schedule'],
        [PAGES.people.title, '#people'],
        [PAGES.notifications.title, '#notifications'],
      ],
      content: renderCards(context, view),
    },
    last: {
      tabs: [[t.tabs.dhcp, '#dhcp-pxe']],
      content: view.search.wrap(t.keywords.dhcp, renderDhcp(context)),
    },
  }))
}

function renderCards(context: CurrentContext, view: SettingsView): Html {
  const { search } = view
  return html`${renderCluster(context, search)}
    <div class="columns">
      <div>
        ${search.wrap(t.keywords.cache, renderCache(context, view))}
        ${search.wrap(t.keywords.release, renderRelease(view))}
      </div>
      <div>
        ${search.wrap(t.keywords.backup, renderBackup(view))}
        ${search.wrap(t.keywords.people, renderPeople(context))}
        ${search.wrap(t.keywords.notifications, renderNotifications(context))}
      </div>
    </div>`
}

/** Beside the button of a card: that what it saves was just saved. */
const renderSaved = ({ saved }: SettingsView, names: readonly string[]): Content =>
  names.some((name) => saved.has(name)) ? badge('done', t.row.saved) : null

const renderCluster = ({ services, clock }: CurrentContext, search: SettingsView['search']) =>
  services.presence === null
    ? null
    : search.wrap(t.keywords.servers, renderServers(services.presence.view(), clock()))

function renderCache(context: CurrentContext, view: SettingsView): Html {
  const { rows, refusals } = view
  const { entries, skipped, fetchedAt, error } = context.site.catalog.snapshot()
  const row = findRow(rows, 'withcache.url')
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
        ${view.search.field}
        ${upstreamField(row, { name: 'catalog_url', label: t.cache.address }, refusals)}
        ${row?.origin.by === 'environment' ? null : html`<button>${t.cache.button}</button>`}
        ${renderSaved(view, ['withcache.url'])}
      </form>
      ${factList([
        [t.cache.read, renderTime(fetchedAt, context.clock(), t.cache.never)],
        [t.cache.error, error === null ? null : html`<span class="warning">${error}</span>`],
        [t.cache.skipped, skipped.length === 0 ? null : renderSkipped(skipped)],
      ])}
      ${postButton({ action: '/admin/cache/refresh', label: t.cache.refresh })}
      ${renderCurlBlock(context, [
        {
          method: 'POST',
          path: '/admin/cache/refresh',
          scope: 'admin',
          label: t.cache.refresh,
        },
      ])}
    `,
  })
}

const renderPeople = ({ site }: CurrentContext): Html =>
  card({
    title: PAGES.people.title,
    id: 'people',
    body: html`<p class="dim">${PAGES.people.card.text}</p>
      <a class="button" href="/ui/people"
        >${fillCount(PAGES.people.card.link, site.people?.store.list().length ?? 0)}</a
      >`,
  })

const renderNotifications = ({ services }: CurrentContext): Html =>
  card({
    title: PAGES.notifications.title,
    id: 'notifications',
    body: html`<p class="dim">${PAGES.notifications.card.text}</p>
      <a class="button" href="/ui/notifications"
        >${fillCount(PAGES.notifications.card.link, services.notify.receivers.list().length)}</a
      >`,
  })

/** A broken catalog can skip thousands. */
const MAX_SKIPPED = 20

const renderSkipped = (skipped: readonly SkippedEntry[]): Html =>
  html`${skipped
    .slice(0, MAX_SKIPPED)
    .map(({ name, reason }) => html`<div>${fill(t.cache.skippedEntry, { name, reason })}</div>`)}
  ${skipped.length > MAX_SKIPPED ? html`<div>${fill(t.cache.more, { count: skipped.length - MAX_SKIPPED })}</div>` : null}`

function renderRelease(view: SettingsView): Html {
  const { rows, refusals } = view
  return card({
    title: t.release.title,
    id: 'netboot-release',
    aside: html`<a class="small" href="/ui/netboot#install">${t.release.link}</a>`,
    body: html`<p class="dim">${t.release.text}</p>
      <form method="post" action="/ui/settings/upstream">
        ${view.search.field}
        ${upstreamField(
          findRow(rows, 'boot.release_repo'),
          { name: 'netboot_repo', label: t.release.repository, placeholder: 'owner/name' },
          refusals,
        )}
        ${upstreamField(
          findRow(rows, 'boot.release_tag'),
          { name: 'netboot_tag', label: t.release.tag, hint: t.release.tagHint },
          refusals,
        )}
        <button>${t.release.button}</button>
        ${renderSaved(view, ['boot.release_repo', 'boot.release_tag'])}
      </form>`,
  })
}

/** No backups at all and a schedule without an interval are the same to a person: one choice. */
function renderBackup(view: SettingsView): Html {
  const { rows, refusals } = view
  const isOn = findRow(rows, 'backup.enabled')?.value === true
  const kept = isOn ? findRow(rows, 'backup.cadence')?.value : 'manual'
  const cadence = findRow(rows, 'backup.cadence')
  return card({
    title: t.backup.title,
    id: 'backup-schedule',
    aside: html`<a class="small" href="/ui/backups">${t.backup.link}</a>`,
    body: html`<form method="post" action="/ui/settings/backup">
      ${hidden({ backup_enabled: 'on' })} ${view.search.field}
      ${selectField({
        name: 'backup_cadence',
        label: t.backup.cadence,
        value: refusals.get('backup.cadence')?.text ?? String(kept),
        error: refusals.get('backup.cadence')?.error ?? null,
        options: Object.entries(cadence?.setting.labels ?? {}).map(([value, text]) => ({
          value,
          text,
        })),
      })}
      ${renderRetention(findRow(rows, 'backup.retention'), refusals)}
      <button>${t.backup.button}</button>
      ${renderSaved(view, ['backup.cadence'])}
    </form>`,
  })
}

function renderRetention(row: ShownSetting | undefined, refusals: Refusals): Content {
  const field = row?.setting.field
  if (row === undefined || field?.as !== 'number') return null
  const refused = refusals.get(row.name)
  return textField({
    name: 'backup_retention_count',
    label: row.setting.title,
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
