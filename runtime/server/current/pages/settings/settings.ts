/** /ui/settings: what this line adds to the settings: those that are saved in the database, and the DHCP options. */
import type { Answer } from '#kit/web/answers/answers.ts'
import type { SkippedEntry } from '#engine/catalog/rules/catalog.ts'
import { badge, card, factList, tag } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Html, type Content } from '#kit/web/ui/html.ts'
import { renderTime, renderAge, type Clock } from '#kit/web/ui/times.ts'
import { pageAt, formAt } from '#server/pages/context-routes.ts'
import {
  filePosts,
  checkFields,
  describeError,
  type CardStore,
  recordSettingsEvent,
  readShown,
} from '#server/pages/settings/file-posts.ts'
import {
  SETTINGS_PATH,
  foldRows,
  showSettings,
  type SettingsView,
  savedAddress,
  SEARCH_FIELD,
  searchOf,
} from '#server/pages/settings/settings-list.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { DHCP_ID, renderDhcp } from '../dhcp/dhcp.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import type { ClusterView } from '#fleet/cluster/presence.ts'
import {
  countBehind,
  isSilent,
  listDifferences,
  type MemberRow,
} from '#fleet/cluster/rules/member.ts'
import { standingOf } from '#fleet/cluster/rules/shared-netboot.ts'
import { renderTable } from '#kit/web/ui/tables.ts'
import { compareFields } from '#fleet/state/rules/event-table.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Refused } from '#server/pages/form-answer.ts'
import { checkSettings, saveSettings } from '#server/current/assembly/configuration.ts'

// Saves the settings that the database keeps: from the form of the settings page, and as the deployed server's two forms posted them.

/** As on the deployed server, with the settings that they set. */
const UPSTREAM = {
  netboot_repo: 'boot.release_repo',
  netboot_tag: 'boot.release_tag',
  catalog_url: 'withcache.url',
} as const

const CARD_POSTS = [
  formAt(`${SETTINGS_PATH}/upstream`, 'admin', saveUpstream),
  formAt(`${SETTINGS_PATH}/backup`, 'admin', saveBackup),
]

const createCardStore = (context: CurrentContext): CardStore => ({
  check: (given) =>
    new Map(checkSettings(context.services.config, given).map(({ at, error }) => [at, error])),
  async save(given) {
    const of = (isMeant: (name: string) => boolean) =>
      Object.fromEntries(Object.entries(given).filter(([name]) => isMeant(name)))
    const backup = of(isOfBackup)
    // Who chooses an interval wants backups.
    const isChosen = 'backup.cadence' in given && given['backup.cadence'] !== 'manual'
    const enabled = isChosen && !('backup.enabled' in given) ? { 'backup.enabled': 'true' } : {}
    await saveAll(context, 'backup', { ...backup, ...enabled })
    await saveAll(
      context,
      'upstream',
      of((name) => !isOfBackup(name)),
    )
  },
})

const isOfBackup = (name: string): boolean => name.startsWith('backup.')

interface Refusal {
  readonly at: string
  readonly value: string
  readonly error: string
}

async function saveUpstream(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  checkFields(form, Object.keys(UPSTREAM))
  const given = Object.entries(UPSTREAM).flatMap(([field, name]) => {
    const text = form.get(field)
    return text === null ? [] : [[name, text]]
  })
  const refusal = await saveAll(context, 'upstream', Object.fromEntries(given))
  const anchor = form.has('catalog_url') ? 'ramboot' : 'netboot-release'
  if (refusal !== null) {
    const at = form.has(SEARCH_FIELD) ? anchor : refusal.at
    return context.goBack(SETTINGS_PATH, asRefused(form, refusal, at))
  }
  const names = given.flatMap(([name]) => name ?? [])
  const post = { saved: 'upstream', names, anchor, plainAnchor: null } as const
  return context.goTo(savedAddress(form, post))
}

/** An invalid schedule: a 422 for programs, the form again for people. */
async function saveBackup(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  checkFields(form, ['backup_enabled', 'backup_cadence', 'backup_retention_count'])
  const refusal = await saveAll(context, 'backup', {
    'backup.enabled': form.has('backup_enabled') ? 'true' : 'false',
    'backup.cadence': form.get('backup_cadence') ?? 'manual',
    'backup.retention': form.get('backup_retention_count') ?? '',
  })
  if (refusal === null) {
    const names = ['backup.cadence']
    return context.goTo(savedAddress(form, { saved: 'backup', names, anchor: 'backup-schedule' }))
  }
  const isPerson = context.event.req.headers.get('accept')?.includes('text/html') === true
  if (!isPerson) throw refuse(422, `${refusal.at} ${refusal.error}`)
  return context.goBack(SETTINGS_PATH, asRefused(form, refusal, 'backup-schedule'))
}

const asRefused = (
  form: URLSearchParams,
  { at, value, error }: Refusal,
  anchor: string,
): Refused => ({
  error,
  typed: { [at]: value },
  errors: { [at]: describeError(error) },
  anchor,
  query: searchOf(form),
})

const SUMMARIES = {
  upstream: 'Upstream settings changed',
  backup: 'Backup settings changed',
} as const

/** All or none; a file's value that nobody changed stays the file's. */
async function saveAll(
  context: CurrentContext,
  what: 'upstream' | 'backup',
  given: Readonly<Record<string, string>>,
): Promise<Refusal | null> {
  const before = readShown(context, Object.keys(given))
  const saved = await saveSettings(context.services, given)
  if (!saved.ok) return { ...saved.refusal, value: given[saved.refusal.at] ?? '' }
  const names = Object.keys(saved.value)
  if (names.length === 0) return null
  await recordSettingsEvent(context, `settings.${what}.updated`, SUMMARIES[what], {
    ...saved.value,
    changes: compareFields(before, readShown(context, names)),
  })
  return null
}

/** `view` null: the database does not answer. */
function renderServers(view: ClusterView | null, clock: Clock): Html {
  const differences = view === null ? [] : listDifferences(view.members)
  return card({
    title: PAGES.settings.servers.title,
    id: 'servers',
    aside:
      view === null
        ? badge('needs-you', PAGES.settings.servers.unknown)
        : badge('done', fillCount(PAGES.settings.servers.count, view.members.length)),
    body:
      view === null
        ? html`<p>${PAGES.settings.servers.unanswered}</p>`
        : renderView(view, differences, clock),
  })
}

const renderView = (
  view: ClusterView,
  differences: ReturnType<typeof listDifferences>,
  clock: Clock,
): Html =>
  html`${renderTable({
    caption: PAGES.settings.servers.title,
    columns: [
      PAGES.settings.servers.server,
      PAGES.settings.servers.release,
      PAGES.settings.servers.changes,
      PAGES.settings.servers.netboot,
      PAGES.settings.servers.seen,
      PAGES.settings.servers.backups,
    ],
    rows: view.members.map((member) => renderMember(view, member, clock)),
  })}
  ${factList([
    [PAGES.settings.servers.leads, renderLeads(view, clock)],
    [
      PAGES.settings.servers.survives,
      view.survivesHost
        ? PAGES.settings.servers.survivesYes
        : warn(PAGES.settings.servers.survivesNo),
    ],
    [
      PAGES.settings.servers.secrets,
      view.secrets === 'shared' ? PAGES.settings.servers.shared : warn(SECRETS[view.secrets]),
    ],
    [
      PAGES.settings.servers.differences,
      differences.length === 0 ? PAGES.settings.servers.noDifferences : null,
    ],
  ])}
  ${differences.length === 0 ? null : renderDifferences(differences)}`

const SECRETS = {
  own: PAGES.settings.servers.own,
  unreadable: PAGES.settings.servers.unreadable,
} as const

const warn = (text: string): Html => html`<span class="warning">${text}</span>`

/** Only the leader shows pages, so this server leads. */
const renderLeads = ({ lease }: ClusterView, clock: Clock): Content =>
  lease.holder === ''
    ? warn(PAGES.settings.servers.nobody)
    : html`<strong>${lease.holder}</strong>, ${PAGES.settings.servers.since}
        ${renderTime(lease.since, clock)}`

function renderMember(
  { ownId, lease, netboot }: ClusterView,
  member: MemberRow,
  clock: Clock,
): Html {
  const { id, name, url, release, silentSeconds, facts } = member
  const seen = new Date(clock.now.getTime() - silentSeconds * 1000)
  return html`<tr>
    <td>
      ${url === '' ? name : html`<a href="${url}">${name}</a>`}
      ${id === ownId ? tag(PAGES.settings.servers.answers) : null}
    </td>
    <td data-label="${PAGES.settings.servers.release}">${release}</td>
    <td data-label="${PAGES.settings.servers.changes}">${renderBehind(member, lease.seq)}</td>
    <td data-label="${PAGES.settings.servers.netboot}">${renderNetboot(netboot, facts.netboot)}</td>
    <td data-label="${PAGES.settings.servers.seen}">
      ${isSilent(member) ? warn(renderAge(seen, clock.now)) : PAGES.settings.servers.now}
    </td>
    <td data-label="${PAGES.settings.servers.backups}">
      <span class="small">${facts.backups}</span>
    </td>
  </tr>`
}

function renderNetboot(row: ClusterView['netboot'], fact: MemberRow['facts']['netboot']): Content {
  if (row === null) return PAGES.settings.servers.none
  const standing = standingOf(fact, row)
  const text = fill(PAGES.settings.servers.netbootStates[standing], { trouble: fact.trouble })
  return standing === 'troubled' ? warn(text) : text
}

function renderBehind(member: MemberRow, newest: number): Content {
  const behind = countBehind(member, newest)
  if (behind === null) return PAGES.settings.servers.none
  return behind === 0
    ? PAGES.settings.servers.all
    : fillCount(PAGES.settings.servers.behind, behind)
}

const renderDifferences = (differences: ReturnType<typeof listDifferences>): Html =>
  html`<p class="warning">${PAGES.settings.servers.differ}</p>
    ${renderTable({
      caption: PAGES.settings.servers.differences,
      columns: [PAGES.settings.servers.setting, PAGES.settings.servers.values],
      rows: differences.map(
        ({ name, values }) =>
          html`<tr>
            <td><code>${name}</code></td>
            <td data-label="${PAGES.settings.servers.values}">
              ${values.map(({ server, value }) => html`<div>${fill(PAGES.settings.servers.value, { server, value: value || PAGES.settings.servers.unset })}</div>`)}
            </td>
          </tr>`,
      ),
    })}`

const t = PAGES.settings

export const SETTINGS_PAGES = [
  pageAt(SETTINGS_PATH, 'admin', show),
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
