/** /ui/settings: what this line adds to the settings: those that are saved in the database, and the DHCP options. */
import type { Answer } from '#kit/web/answers/answers.ts'
import type { SkippedEntry } from '#engine/catalog/rules/catalog.ts'
import { badge, card, factList } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { filePosts } from '#server/pages/settings/file-posts.ts'
import { SETTINGS_PATH } from '#server/pages/settings/after-post.ts'
import { foldRows, showSettings, type SettingsView } from '#server/pages/settings/settings-list.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { DHCP_ID, renderDhcp } from '../dhcp/dhcp.ts'
import { CARD_POSTS, createCardStore } from './card-posts.ts'
import { renderServers } from './servers-card.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, fillCount } from '#kit/texts/text.ts'

const t = PAGES.settings

export const SETTINGS_PAGES = [
  pageAt(SETTINGS_PATH, show),
  ...CARD_POSTS,
  ...filePosts((context: CurrentContext) => createCardStore(context)),
]

/** Forms do not nest: the button of the cache's card belongs to this one. */
const REFRESH = 'refresh-catalog'

async function show(context: CurrentContext): Promise<Answer> {
  return await showSettings(context, async (view) => ({
    first: renderCluster(context, view.search),
    fields: card({
      title: t.services.title,
      id: 'services',
      body: html`${renderCache(context, view)}${renderRelease(view)}${renderBackup(view)}`,
    }),
    last: html`${card({
        title: t.more.title,
        id: 'more',
        body: html`${view.search.fold(t.keywords.dhcp, {
          title: t.dhcp.title,
          id: DHCP_ID,
          about: t.more.dhcp,
          body: renderDhcp(context),
        })}
        ${renderPeople(context, view.search)} ${renderNotifications(context, view.search)}`,
      })}
      <form method="post" action="/admin/cache/refresh" id="${REFRESH}"></form>`,
  }))
}

const renderCluster = ({ services, clock }: CurrentContext, search: SettingsView['search']) =>
  services.presence === null
    ? null
    : search.wrap(t.keywords.servers, renderServers(services.presence.view(), clock()))

const rowsOf = ({ rows }: SettingsView, id: string) =>
  rows.filter(({ setting }) => setting.card === id)

function renderCache(context: CurrentContext, view: SettingsView): Html {
  const { entries, skipped, fetchedAt, error } = context.site.catalog.snapshot()
  return foldRows(view, {
    title: t.cache.title,
    id: 'ramboot',
    group: t.keywords.cache,
    rows: rowsOf(view, 'ramboot'),
    aside:
      error === null
        ? badge('done', fillCount(t.cache.images, entries.length))
        : badge('needs-you', t.cache.unavailable),
    before: html`<p class="dim">${t.cache.text}</p>`,
    after: html`${factList([
        [t.cache.read, renderTime(fetchedAt, context.clock(), t.cache.never)],
        [t.cache.error, error === null ? null : html`<span class="warning">${error}</span>`],
        [t.cache.skipped, skipped.length === 0 ? null : renderSkipped(skipped)],
      ])}
      <p><button form="${REFRESH}">${t.cache.refresh}</button></p>
      ${renderCurlBlock(context, [
        {
          method: 'POST',
          path: '/admin/cache/refresh',
          scope: 'admin',
          label: t.cache.refresh,
        },
      ])}`,
  })
}

const renderRelease = (view: SettingsView): Html =>
  foldRows(view, {
    title: t.release.title,
    id: 'netboot-release',
    group: t.keywords.release,
    rows: rowsOf(view, 'netboot-release'),
    before: html`<p class="dim">
      ${fillHtml(t.release.text, { link: html`<a href="/ui/netboot#install">${t.release.link}</a>` })}
    </p>`,
  })

const renderBackup = (view: SettingsView): Html =>
  foldRows(view, {
    title: t.backup.title,
    id: 'backup-schedule',
    group: t.keywords.backup,
    rows: rowsOf(view, 'backup-schedule'),
    before: html`<p class="dim">
      ${fillHtml(t.backup.text, { link: html`<a href="/ui/backups">${t.backup.link}</a>` })}
    </p>`,
  })

const renderPeople = ({ site }: CurrentContext, search: SettingsView['search']): Html =>
  search.wrap(
    t.keywords.people,
    html`<p class="fold-link" id="people">
      <a href="/ui/people">${PAGES.people.title}</a>
      <span class="small dim"
        >${PAGES.people.card.text}
        ${fillCount(PAGES.people.card.count, site.people?.store.list().length ?? 0)}</span
      >
    </p>`,
  )

const renderNotifications = ({ services }: CurrentContext, search: SettingsView['search']): Html =>
  search.wrap(
    t.keywords.notifications,
    html`<p class="fold-link" id="notifications">
      <a href="/ui/notifications">${PAGES.notifications.title}</a>
      <span class="small dim"
        >${PAGES.notifications.card.text}
        ${fillCount(PAGES.notifications.card.count, services.notify.receivers.list().length)}</span
      >
    </p>`,
  )

/** A broken catalog can skip thousands. */
const MAX_SKIPPED = 20

const renderSkipped = (skipped: readonly SkippedEntry[]): Html =>
  html`${skipped
    .slice(0, MAX_SKIPPED)
    .map(({ name, reason }) => html`<div>${fill(t.cache.skippedEntry, { name, reason })}</div>`)}
  ${skipped.length > MAX_SKIPPED ? html`<div>${fill(t.cache.more, { count: skipped.length - MAX_SKIPPED })}</div>` : null}`
