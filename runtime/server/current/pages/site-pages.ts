/** The pages of this line, and the views that the server renders with. */
import type { H3Event } from 'h3'
import type { ServerPlugin } from '../../routes/site.ts'
import type { ServerViews } from '../../routes/site.ts'
import { assetRoute } from '../../../kit/web/ui/assets.ts'
import { createLayout } from '../../../kit/web/ui/layout.ts'
import { SECTIONS } from '../../../kit/web/ui/sections.ts'
import { themeRoute } from '../../../kit/web/ui/theme.ts'
import type { Assets } from '../../../kit/web/answers/assets.ts'
import type { Runs } from '../../../fleet/run/runs.ts'
import type { Machine } from '../rules/machine.ts'
import { ACCOUNT_PAGES } from './settings/account.ts'
import { BACKUP_PAGES } from './backups/backups.ts'
import { BULK_PAGES } from './machines/bulk.ts'
import { DASHBOARD_PAGES } from './dashboard/dashboard.ts'
import { CACHE_PAGES } from './images/cache-link.ts'
import type { ContextRoute } from './frame/context-routes.ts'
import { createPageContext, type PageDependencies } from './frame/page-context.ts'
import { TEMPLATE_PAGES } from './first-boot/templates.ts'
import { EVENT_PAGES } from './events/events.ts'
import { createMatch } from './machines/fleet-query.ts'
import { renderErrorPage } from '../../../kit/web/ui/error-page.ts'
import { renderLoginPage } from '../../../kit/web/ui/login-page.ts'
import { fillHtml, html } from '../../../kit/web/ui/html.ts'
import { PAGES } from '../../texts/texts.ts'
import { MACHINE_PAGES } from './machines/machine.ts'
import { parseColumns, renderColumns } from './view/fleet-columns.ts'
import { viewMachine } from './view/machine-view.ts'
import { MACHINES_PAGES } from './machines/machines.ts'
import { NETBOOT_PAGES } from './netboot/netboot.ts'
import { renderMachineRow } from './view/machine-row.ts'
import { renderBar } from './view/run-bar.ts'
import { RUN_PAGES } from './runs/runs.ts'
import { SETTINGS_PAGES } from './settings/settings.ts'

const ROUTES: readonly ContextRoute[] = [
  ...DASHBOARD_PAGES,
  ...MACHINES_PAGES,
  ...BULK_PAGES,
  ...MACHINE_PAGES,
  ...TEMPLATE_PAGES,
  ...RUN_PAGES,
  ...CACHE_PAGES,
  ...NETBOOT_PAGES,
  ...BACKUP_PAGES,
  ...EVENT_PAGES,
  ...SETTINGS_PAGES,
  ...ACCOUNT_PAGES,
]

interface PagesDependencies extends Omit<PageDependencies, 'layout'> {
  readonly version: string
  readonly assets: Assets
  readonly runs: Pick<Runs, 'findRunning' | 'marks'>
  now(): Date
}

/** A new object whenever anything changed that the states of all machines depend on. */
function createContext({ images, gather, runs, now }: PagesDependencies): () => object {
  let [known, listed, text]: [object, unknown, string] = [{}, null, '']
  return () => {
    const { sets, settings } = gather({ baseUrl: NO_BASE, now: now().toISOString() })
    // Reports of runs also change the machine; the marks of silent runs do not.
    const next = JSON.stringify([sets, settings, runs.marks()])
    if (listed !== images() || text !== next) known = {}
    ;[listed, text] = [images(), next]
    return known
  }
}

/** Rows of the live channel belong to no request; the state of a machine does not depend on it. */
const NO_BASE = 'http://localhost'

/** Makes what this line renders for the server (`views`) and the plugin that adds the routes of its pages. */
export function createPages(parts: PagesDependencies) {
  const { version, assets, gather, runs, now } = parts
  const layout = createLayout({ version, assetUrl: assets.url, nav: SECTIONS })
  const view = (machine: Machine) =>
    viewMachine(
      machine,
      gather({ baseUrl: NO_BASE, now: now().toISOString() }),
      runs.findRunning(machine.mac),
    )
  const views: ServerViews<Machine> = {
    match: createMatch({ context: createContext(parts), view, now }),
    columnsOf: (query) => renderColumns(parseColumns(query?.get('columns') ?? null)),
    renderRow: (machine, columns) =>
      String(
        renderMachineRow(view(machine), { now: now(), zone: parts.zone() }, parseColumns(columns)),
      ),
    renderBar: (run) => String(renderBar(run)),
    renderLogin: (given) =>
      renderLoginPage(layout, {
        ...given,
        heading: 'flasher',
        label: PAGES.frame.login.label,
        help: fillHtml(PAGES.frame.login.help, {
          command: html`<code>flasher-web password</code>`,
        }),
      }),
    renderError: (given) => renderErrorPage(layout, given),
    // Readers of the API document may not be logged in, so they see no count of failures.
    renderDocument: (given) => layout.page({ ...given, section: given.here, alarms: 0 }),
  }
  const plugin: ServerPlugin<Machine> = (site) => {
    const contextOf = (event: H3Event) => createPageContext(site, { ...parts, layout }, event)
    return { routes: [assetRoute(assets), themeRoute, ...ROUTES.map((route) => route(contextOf))] }
  }
  return { views, plugin }
}
