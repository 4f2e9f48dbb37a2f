/** The pages of this line, and the views that the server renders with. */
import type { Run } from '../../../engine/inventory/rules/run.ts'
import type { Assets } from '../../../kit/web/answers/assets.ts'
import type { ServerPlugin } from '../../routes/site.ts'
import type { ServerViews } from '../../routes/site.ts'
import { assetRoute } from '../../../kit/web/ui/assets.ts'
import { createLayout, type NavLink } from '../../../kit/web/ui/layout.ts'
import { themeRoute } from '../../../kit/web/ui/theme.ts'
import type { Machine } from '../rules/machine.ts'
import { bootPages } from './boot.ts'
import { createMatch } from './fleet-query.ts'
import { fleetPages } from './fleet.ts'
import { renderBar, renderMachineRow } from './frame/machine-row.ts'
import { createPageContext, type PageDependencies } from './frame/page-context.ts'
import { renderErrorPage } from '../../../kit/web/ui/error-page.ts'
import { renderLogin } from './frame/login.ts'
import { imagePages } from './images.ts'
import { machinePages } from './machine.ts'
import { provisionPages } from './provision.ts'
import { pxePages } from './pxe.ts'
import { settingsPages } from './settings.ts'
import { workflowPages } from './workflow.ts'
import { PAGES } from '../../texts/texts.ts'

const t = PAGES.frame.titles

interface Pages {
  readonly views: ServerViews<Machine>
  readonly plugin: ServerPlugin<Machine>
}

interface PagesDependencies extends Omit<PageDependencies, 'layout'> {
  readonly version: string
  readonly assets: Assets
  /** The flash of a machine that is under way; null: none is. */
  findRun(mac: string): Run | null
  now(): Date
}

const NAV: readonly NavLink[] = [
  { href: '/ui/dashboard', title: t.dashboard, icon: 'dashboard' },
  { href: '/ui/machines', title: t.machines, icon: 'machines' },
  { href: '/ui/images', title: t.images, icon: 'image' },
  { href: '/ui/boot', title: t.bootFiles, icon: 'netboot' },
  { href: '/ui/settings', title: t.settings, icon: 'settings' },
]

/** Makes what this line renders for the server (`views`) and the plugin that adds the routes of its pages. */
export function createPages(parts: PagesDependencies): Pages {
  const { version, assets, now, zone, findRun } = parts
  const layout = createLayout({ version, assetUrl: assets.url, nav: NAV })
  const views: ServerViews<Machine> = {
    match: createMatch(now),
    // The table has the same columns for everybody.
    columnsOf: () => '',
    renderRow: (machine) =>
      String(renderMachineRow(machine, findRun(machine.mac), { now: now(), zone: zone() })),
    renderBar: (run) => String(renderBar(run)),
    renderLogin: (given) => renderLogin(layout, parts.user, given),
    renderError: (given) => renderErrorPage(layout, given),
    renderDocument: (given) => layout.page({ ...given, section: given.here, alarms: 0 }),
  }
  const plugin: ServerPlugin<Machine> = (site) => {
    const context = createPageContext(site, { ...parts, layout })
    const routes = [
      assetRoute(assets),
      themeRoute,
      ...fleetPages(context),
      ...machinePages(context),
      ...provisionPages(context),
      ...imagePages(context),
      ...bootPages(context),
      ...settingsPages(context),
      ...workflowPages(context),
      ...pxePages(context),
    ]
    return { routes }
  }
  return { views, plugin }
}
