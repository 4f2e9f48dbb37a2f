/** /ui/settings: every setting with its source, the forms that change them, and the DHCP cheatsheet. */
import type { H3Event, HTTPResponse } from 'h3'
import type { SkippedEntry } from '../../../../core/catalog/catalog.ts'
import type { ShownSetting } from '../../../../core/config/shown-setting.ts'
import { badge, banner, card, factList, renderTabs } from '../../../../web/ui/elements.ts'
import { postButton, textField } from '../../../../web/ui/fields.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
import type { Route } from '../../../../web/http/route.ts'
import { renderTime } from '../../../../web/ui/times.ts'
import { renderSchedule } from '../backups/backups.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { pageRoute } from '../frame/page-routes.ts'
import { renderDhcp } from './dhcp-cheatsheet.ts'
import { nameOf, renderSetting, type Refused } from './settings-rows.ts'
import { settingsPosts } from './settings-posts.ts'

const PATH = '/ui/settings'

/** The headings and the sections of the configuration below them. */
const GROUPS = [
  { title: 'Identity', id: 'identity', sections: ['admin', 'display', 'log', 'metrics'] },
  {
    title: 'Network',
    id: 'network',
    sections: ['server', 'pxe', 'netboot', 'releases', 'boot', 'withcache'],
  },
  {
    title: 'Storage',
    id: 'storage',
    sections: ['paths', 'backup', 'retention', 'tuning', 'cache'],
  },
  { title: 'Wizard', id: 'wizard', sections: ['wizard'] },
] as const

const TABS = [
  ['Cache service', '#ramboot'],
  ['Release', '#netboot-release'],
  ['Backups', '#backup-schedule'],
  ...GROUPS.map(({ title, id }) => [title, `#${id}`] as const),
  ['DHCP', '#dhcp-pxe'],
] as const

export const settingsPages = (context: PageContext): readonly Route[] => [
  pageRoute(PATH, (event) => show(context, event)),
  ...settingsPosts(context),
]

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { config } = context.services
  const rows = config.list()
  const refused = readRefused(context, event)
  return await context.show(event, {
    title: 'Settings',
    section: PATH,
    messages: html`${renderOutcome(context, event, refused)}${renderProblems(context)}`,
    body: html`${renderTabs(TABS)}
      <div class="columns">
        <div>${renderCache(context, rows, refused)} ${renderRelease(rows, refused)}</div>
        <div>
          ${card({ title: 'Backup schedule', id: 'backup-schedule', body: renderSchedule(context) })}
        </div>
      </div>
      ${GROUPS.map(({ title, id, sections }) =>
        card({
          title,
          id,
          body: html`<ul class="settings">
            ${rows
              .filter(({ section }) => sections.some((each) => each === section))
              .map((row) => renderSetting(row, refused))}
          </ul>`,
        }),
      )}
      ${await renderDhcp(context, event)}`,
  })
}

/** After a refusal: which setting, what was typed, and why it was refused. */
function readRefused({ site }: PageContext, event: H3Event): Refused | null {
  const notice = site.notices.read(event)
  const name = notice?.typed['at']
  if (notice === null || name === undefined) return null
  return { name, error: notice.error, text: notice.typed['value'] ?? '' }
}

const SAVED: Readonly<Record<string, string>> = {
  upstream: 'Saved and in effect.',
  backup: 'Schedule saved. Takes effect within a minute.',
  config: 'Saved in the configuration file and in effect.',
  restart: 'Saved in the configuration file. Takes effect after a restart.',
}

function renderOutcome(context: PageContext, event: H3Event, refused: Refused | null): Content {
  const saved = event.url.searchParams.get('saved') ?? ''
  if (Object.hasOwn(SAVED, saved)) return banner('done', SAVED[saved])
  if (refused === null) return messageOf(context, event)
  return banner(
    'failed',
    html`<a href="#${refused.name}">${refused.name}</a> was not saved: ${refused.error}`,
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
    title: 'Cache service',
    id: 'ramboot',
    aside:
      error === null
        ? badge('done', `${entries.length} images`)
        : badge('needs-you', 'unavailable'),
    body: html`
      <p class="dim">
        The cache service holds the images. Its catalog is read at start and every minute.
      </p>
      <form method="post" action="/ui/settings/upstream">
        ${upstreamField(row, 'catalog_url', 'Address of the cache service', refused)}
        ${row?.locked == null ? html`<button>Save address</button>` : null}
      </form>
      ${factList([
        ['Catalog read', renderTime(fetchedAt, context.clock(), 'never')],
        ['Error', error === null ? null : html`<span class="warning">${error}</span>`],
        ['Skipped', skipped.length === 0 ? null : renderSkipped(skipped)],
      ])}
      ${postButton({ action: '/admin/cache/refresh', label: 'Read the catalog now' })}
    `,
  })
}

/** A broken catalog can skip thousands. */
const MAX_SKIPPED = 20

const renderSkipped = (skipped: readonly SkippedEntry[]): Html =>
  html`${skipped
    .slice(0, MAX_SKIPPED)
    .map(({ name, reason }) => html`<div>${name}: ${reason}</div>`)}
  ${skipped.length > MAX_SKIPPED ? html`<div>and ${skipped.length - MAX_SKIPPED} more</div>` : null}`

const renderRelease = (rows: readonly ShownSetting[], refused: Refused | null): Html =>
  card({
    title: 'Netboot release',
    id: 'netboot-release',
    body: html`<p class="dim">Where the Netboot page fetches live systems.</p>
      <form method="post" action="/ui/settings/upstream">
        ${upstreamField(find(rows, 'boot.release_repo'), 'netboot_repo', 'Repository, owner/name', refused)}
        ${upstreamField(find(rows, 'boot.release_tag'), 'netboot_tag', 'Tag', refused)}
        <button>Save release</button>
      </form>`,
  })

/** Saved by this page; only the environment has precedence. */
function upstreamField(
  row: ShownSetting | undefined,
  name: string,
  label: string,
  refused: Refused | null,
): Content {
  if (row === undefined) return null
  if (row.origin.by === 'environment') {
    return factList([
      [label, html`<strong>${row.shown}</strong> <span class="small dim">${row.locked}</span>`],
    ])
  }
  const mine = refused?.name === nameOf(row) ? refused : null
  return textField({
    name,
    label,
    value: mine?.text ?? row.text,
    error: mine?.error ?? null,
    placeholder: row.shown,
    hint: 'Leave empty to use the configured value.',
  })
}
