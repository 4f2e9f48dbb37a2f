/** /ui/settings: what this line adds to the settings: those that are saved in the database, and the DHCP options. */
import type { Answer } from '#kit/web/answers/answers.ts'
import type { SkippedEntry } from '#engine/catalog/rules/catalog.ts'
import { badge, card, factList, tag } from '#kit/web/ui/elements.ts'
import { html, type Html, type Content } from '#kit/web/ui/html.ts'
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
  renderJob,
  showSettings,
  type SettingsView,
  savedAddress,
  SEARCH_FIELD,
  searchOf,
} from '#server/pages/settings/settings-list.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { DHCP_ID, renderDhcp } from '#server/current/netboot/dhcp-page.ts'
import { fill, fillCount } from '#kit/foundation/text.ts'
import type { ClusterView } from '#fleet/cluster/presence.ts'
import {
  countBehind,
  isSilent,
  listDifferences,
  type MemberRow,
} from '#fleet/cluster/rules/lease.ts'
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
    title: 'Servers',
    id: 'servers',
    aside:
      view === null
        ? badge('needs-you', 'unknown')
        : badge(
            'done',
            fillCount({ one: '1 server', other: '{count} servers' }, view.members.length),
          ),
    body:
      view === null
        ? html`<p>The database does not answer at the moment.</p>`
        : renderView(view, differences, clock),
  })
}

const renderView = (
  view: ClusterView,
  differences: ReturnType<typeof listDifferences>,
  clock: Clock,
): Html =>
  html`${renderTable({
    caption: 'Servers',
    columns: ['Server', 'Release', 'Changes', 'Live system', 'Seen', 'Backups in'],
    rows: view.members.map((member) => renderMember(view, member, clock)),
  })}
  ${factList([
    ['Leads', renderLeads(view, clock)],
    [
      'Loss of the database host',
      view.survivesHost
        ? 'An acknowledged change survives it.'
        : warn('An acknowledged change may be lost: synchronous_standby_names is empty.'),
    ],
    [
      'Secrets',
      view.secrets === 'shared'
        ? 'Sessions, password and BMCs are shared.'
        : warn(SECRETS[view.secrets]),
    ],
    ['Settings that differ', differences.length === 0 ? 'none' : null],
  ])}
  ${differences.length === 0 ? null : renderDifferences(differences)}`

const SECRETS = {
  own: 'Each server has its own: database.key is not set.',
  unreadable: 'Other servers share theirs. This one lacks their database.key.',
} as const

const warn = (text: string): Html => html`<span class="warning">${text}</span>`

/** Only the leader shows pages, so this server leads. */
const renderLeads = ({ lease }: ClusterView, clock: Clock): Content =>
  lease.holder === ''
    ? warn('No server leads at the moment.')
    : html`<strong>${lease.holder}</strong>, since ${renderTime(lease.since, clock)}`

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
      ${id === ownId ? tag('answers this page') : null}
    </td>
    <td data-label="Release">${release}</td>
    <td data-label="Changes">${renderBehind(member, lease.seq)}</td>
    <td data-label="Live system">${renderNetboot(netboot, facts.netboot)}</td>
    <td data-label="Seen">${isSilent(member) ? warn(renderAge(seen, clock.now)) : 'now'}</td>
    <td data-label="Backups in">
      <span class="small">${facts.backups}</span>
    </td>
  </tr>`
}

const NETBOOT_STATES = { whole: 'here', copying: 'copying', troubled: '{trouble}' } as const

function renderNetboot(row: ClusterView['netboot'], fact: MemberRow['facts']['netboot']): Content {
  if (row === null) return 'none yet'
  const standing = standingOf(fact, row)
  const text = fill(NETBOOT_STATES[standing], { trouble: fact.trouble })
  return standing === 'troubled' ? warn(text) : text
}

function renderBehind(member: MemberRow, newest: number): Content {
  const behind = countBehind(member, newest)
  if (behind === null) return 'none yet'
  return behind === 0 ? 'all' : fillCount({ one: '1 behind', other: '{count} behind' }, behind)
}

const renderDifferences = (differences: ReturnType<typeof listDifferences>): Html =>
  html`<p class="warning">These settings differ. Those of the server that leads count.</p>
    ${renderTable({
      caption: 'Settings that differ',
      columns: ['Setting', 'Values'],
      rows: differences.map(
        ({ name, values }) =>
          html`<tr>
            <td><code>${name}</code></td>
            <td data-label="Values">
              ${values.map(({ server, value }) => html`<div>${server}: ${value || 'not set'}</div>`)}
            </td>
          </tr>`,
      ),
    })}`

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
    front: card({ id: 'services', body: renderJobs(context, view) }),
    last: html`<form method="post" action="/admin/cache/refresh" id="${REFRESH}"></form>`,
  }))
}

const renderJobs = (context: CurrentContext, view: SettingsView): Html =>
  html`${renderJob(view, 'addresses')} ${renderCache(context, view)}
  ${renderJob(
    view,
    'netboot-release',
    'release repository tag live system',
    view.search.fold('dhcp pxe tftp network boot options 60 66 67 ipxe uefi bios', {
      title: 'DHCP and network boot',
      id: DHCP_ID,
      about: 'Options 60, 66 and 67',
      body: renderDhcp(context),
    }),
  )}
  ${renderJob(view, 'flashing')} ${renderJob(view, 'power')}
  ${renderJob(view, 'backup-schedule', 'backup schedule daily weekly manual', renderLink(view, 'backups restore', html`<a href="/ui/backups">All backups</a>`, 'Choosing an interval also turns scheduled backups on.'))}
  ${renderJob(view, 'access', 'people', [
    renderLink(
      view,
      'admin.password admin.password_hash',
      html`<a id="admin.password" href="/ui/account#change-password">Password</a>`,
      html`<span id="admin.password_hash"
        >Change the administrator password on your account page.</span
      >`,
    ),
    renderLink(
      view,
      'names roles viewer operator administrator login',
      html`<a id="people" href="/ui/people">People</a>`,
      'Who logs in with a name, and with which role.',
    ),
    renderLink(
      view,
      'openid oidc single sign-on sso okta',
      html`<a href="#oidc.issuer">Login with a provider</a>`,
      'Keycloak, Entra, Google and others.',
    ),
  ])}
  ${renderJob(view, 'notifications', '', renderLink(view, 'notify smtp alert events', html`<a href="/ui/notifications">Receivers</a>`, 'Notifications by webhook, mail or Slack.'))}`

const renderLink = ({ search }: SettingsView, words: string, link: Html, about: Content): Html =>
  search.wrap(
    `${words} ${String(link)} ${String(about)}`.replaceAll(/<[^>]*>/g, ''),
    html`<p class="fold-link">${link} <span class="small dim">${about}</span></p>`,
  )

const renderCluster = ({ services, clock }: CurrentContext, search: SettingsView['search']) =>
  services.presence === null
    ? null
    : search.wrap(
        'servers database leader stands by behind release backups secrets key postgresql',
        renderServers(services.presence.view(), clock()),
      )

function renderCache(context: CurrentContext, view: SettingsView): Html {
  const { entries, skipped, fetchedAt, error } = context.site.catalog.snapshot()
  return renderJob(
    view,
    'ramboot',
    'cache service catalog',
    html`${factList([
      [
        'Catalog read',
        html`${renderTime(fetchedAt, context.clock(), 'never')}
          <button form="${REFRESH}" aria-label="Read now: the catalog">Read now</button>`,
      ],
      ['Error', error === null ? null : html`<span class="warning">${error}</span>`],
      ['Skipped', skipped.length === 0 ? null : renderSkipped(skipped)],
    ])}
    ${renderCurlBlock(context, [{ method: 'POST', path: '/admin/cache/refresh', scope: 'admin', label: 'Read the catalog now' }])}`,
    error === null
      ? badge('done', fillCount({ one: '1 image', other: '{count} images' }, entries.length))
      : badge('needs-you', 'unavailable'),
  )
}

/** A broken catalog can skip thousands. */
const MAX_SKIPPED = 20

const renderSkipped = (skipped: readonly SkippedEntry[]): Html =>
  html`${skipped
    .slice(0, MAX_SKIPPED)
    .map(({ name, reason }) => html`<div>${name}: ${reason}</div>`)}
  ${skipped.length > MAX_SKIPPED ? html`<div>and ${skipped.length - MAX_SKIPPED} more</div>` : null}`
