/** Current line: its pages, its navigation and its machines table. */
import { fillHtml, html } from '#kit/web/ui/html.ts'
import { SECTIONS, SECTION_KEYS } from '#kit/web/ui/sections.ts'
import type { Assets } from '#kit/web/answers/assets.ts'
import type { Runs } from '#fleet/run/runs.ts'
import type { ContextRoute } from '#server/pages/context-routes.ts'
import { createPages } from '#server/pages/site-pages.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { ChannelViews } from '#server/updates/channel.ts'
import type { Site } from '#server/routes/site.ts'
import type { SeenServices } from '../assembly/seen-services.ts'
import type { Machine } from '../rules/machine.ts'
import { BACKUP_PAGES } from './backups/backups.ts'
import { BATCH_PAGES } from './batches/batches.ts'
import { DASHBOARD_PAGES } from './dashboard/dashboard.ts'
import { DHCP_PAGES } from './dhcp/dhcp.ts'
import { EVENT_PAGES } from './events/events.ts'
import { FIND_PAGES, FIND_PATH } from './find/find.ts'
import { TEMPLATE_PAGES } from './first-boot/templates.ts'
import { CHANNEL_PAGES } from './images/channels.ts'
import { CACHE_PAGES } from './images/cache-link.ts'
import { MACHINE_FILE_PAGES } from './machine-file/machine-file.ts'
import { BULK_PAGES } from './machines/bulk.ts'
import { createMatch } from './machines/fleet-query.ts'
import { MACHINE_PAGES } from './machines/machine.ts'
import { MACHINES_PAGES } from './machines/machines.ts'
import { PRINT_PAGES } from './print/labels.ts'
import { NETBOOT_PAGES } from './netboot/netboot.ts'
import { NOTIFICATION_PAGES } from './notifications/notifications.ts'
import { RULE_PAGES } from './notifications/rule-form.ts'
import { PEOPLE_PAGES } from './people/people.ts'
import { withMachines, type CurrentContext, type CurrentServices } from './view/page-context.ts'
import { RUN_PAGES } from './runs/runs.ts'
import { accountPages } from '#server/pages/account/account.ts'
import { keysPages } from '#server/pages/keys-page.ts'
import { PASSWORD_POSTS, renderPassword } from './settings/password-form.ts'
import { TIMELINE_PAGE } from './timeline/timeline.ts'
import { SETTINGS_PAGES } from './settings/settings.ts'
import { parseColumns, renderColumns } from './view/fleet-columns.ts'
import { renderMachineRow } from './view/machine-row.ts'
import { viewMachine } from './view/machine-view.ts'
import { renderBar } from '#server/pages/machines/run-bar.ts'

const EXAMPLES = [
  'mode:flash-once',
  'label:rack-1',
  'state:armed,running',
  'image:debian*',
  'seen:<1h',
  'flashed:never',
  'is:locked',
] as const

/** A new page goes here, and into `SECTIONS` for the navigation. */
const ROUTES: readonly ContextRoute<CurrentContext>[] = [
  ...DASHBOARD_PAGES,
  ...MACHINES_PAGES,
  ...BULK_PAGES,
  ...MACHINE_FILE_PAGES,
  ...BATCH_PAGES,
  ...MACHINE_PAGES,
  ...TEMPLATE_PAGES,
  TIMELINE_PAGE,
  ...FIND_PAGES,
  ...PRINT_PAGES,
  ...RUN_PAGES,
  ...CACHE_PAGES,
  ...CHANNEL_PAGES,
  ...NETBOOT_PAGES,
  ...DHCP_PAGES,
  ...BACKUP_PAGES,
  ...EVENT_PAGES,
  ...SETTINGS_PAGES,
  ...PEOPLE_PAGES,
  ...NOTIFICATION_PAGES,
  ...RULE_PAGES,
  ...accountPages(renderPassword),
  ...PASSWORD_POSTS,
  ...keysPages({ hasFind: true, sections: SECTION_KEYS, examples: EXAMPLES }),
]

interface LinePagesOptions {
  readonly version: string
  readonly assets: Assets
  readonly services: CurrentServices
  /** For the machines that a caller sees. */
  seen(site: Site<Machine>): SeenServices
  readonly runs: Runs
  now(): Date
}

export const createLinePages = (options: LinePagesOptions) =>
  createPages({
    ...options,
    nav: SECTIONS,
    find: FIND_PATH,
    login: {
      label: PAGES.frame.login.label,
      help: fillHtml(PAGES.frame.login.help, { command: html`<code>flasher-web password</code>` }),
    },
    table: createTable(options),
    contextOf: withMachines,
    servicesOf(site) {
      const { services } = options
      const isCut = site.bounds !== null && site.bounds.reach !== null
      // The length of the queue tells about unseen machines.
      return isCut ? { ...services, ...options.seen(site), queue: () => null } : services
    },
    routes: ROUTES,
  })

/** Rows for open pages have no request; states do not depend on it. */
const NO_BASE = 'http://localhost'

function createTable(options: LinePagesOptions): ChannelViews<Machine> {
  const { services, runs, now } = options
  const view = (machine: Machine) =>
    viewMachine(
      machine,
      services.gather({ baseUrl: NO_BASE, now: now().toISOString() }),
      runs.findRunning(machine.mac),
      runs.findWritten(machine.mac),
    )
  const clock = () => ({ now: now(), zone: services.config.current().display.timezone })
  return {
    match: createMatch({ context: createContext(options), view, now }),
    columnsOf: (query) => renderColumns(parseColumns(query?.get('columns') ?? null)),
    renderRow: (machine, columns) =>
      String(renderMachineRow(view(machine), clock(), parseColumns(columns))),
    renderBar: (run) => String(renderBar(run)),
  }
}

/** A new object whenever something changed that all machines' states depend on. */
function createContext({ services, runs, now }: LinePagesOptions): () => object {
  let [known, listed, text]: [object, unknown, string] = [{}, null, '']
  return () => {
    const { sets, settings } = services.gather({ baseUrl: NO_BASE, now: now().toISOString() })
    // Reports of runs change the machine, too; the marks of silent runs do not.
    const next = JSON.stringify([sets, settings, runs.marks(), runs.writtenVersion()])
    if (listed !== services.images() || text !== next) known = {}
    ;[listed, text] = [services.images(), next]
    return known
  }
}
