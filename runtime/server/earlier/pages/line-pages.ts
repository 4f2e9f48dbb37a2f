/** Earlier line: its pages, its navigation and its machines table. */
import type { Runs } from '#fleet/run/runs.ts'
import { printable } from '#kit/foundation/printable.ts'
import { fill } from '#kit/texts/text.ts'
import type { Assets } from '#kit/web/answers/assets.ts'
import { fillHtml, html } from '#kit/web/ui/html.ts'
import type { NavLink } from '#kit/web/ui/layout.ts'
import type { Clock } from '#kit/web/ui/times.ts'
import type { ContextRoute } from '#server/pages/context-routes.ts'
import { createPages } from '#server/pages/site-pages.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { ChannelViews } from '#server/updates/channel.ts'
import type { Machine } from '../rules/machine.ts'
import { BOOT_PAGES } from './boot.ts'
import { createMatch } from './fleet-query.ts'
import { DASHBOARD_PAGE } from './dashboard.ts'
import { FLEET_PAGES } from './fleet.ts'
import { IMAGE_PAGES } from './images.ts'
import { keysPages } from '#server/pages/keys-page.ts'
import { renderBar } from '#server/pages/machines/run-bar.ts'
import { renderMachineRow } from './machine-row.ts'
import { viewMachine } from './machine-view.ts'
import { isOverdue } from '../rules/state.ts'
import { MACHINE_PAGES } from './machine.ts'
import type { EarlierContext, EarlierServices } from './page-context.ts'
import { PROVISION_PAGES } from './provision.ts'
import { PXE_PAGES } from './pxe.ts'
import { SETTINGS_PAGES } from './settings.ts'
import { WORKFLOW_PAGES } from './workflow.ts'

const t = PAGES.frame.titles

const NAV: readonly NavLink[] = [
  { href: '/ui/dashboard', title: t.dashboard, icon: 'dashboard' },
  { href: '/ui/machines', title: t.machines, icon: 'machines' },
  { href: '/ui/images', title: t.images, icon: 'image' },
  { href: '/ui/boot', title: t.bootFiles, icon: 'netboot' },
  { href: '/ui/settings', title: t.settings, icon: 'settings' },
]

const KEY_SECTIONS = [
  ['d', t.dashboard],
  ['m', t.machines],
  ['i', t.images],
  ['n', t.bootFiles],
  ['s', t.settings],
] as const

const ROUTES: readonly ContextRoute<EarlierContext>[] = [
  DASHBOARD_PAGE,
  ...FLEET_PAGES,
  ...MACHINE_PAGES,
  ...PROVISION_PAGES,
  ...IMAGE_PAGES,
  ...BOOT_PAGES,
  ...SETTINGS_PAGES,
  ...WORKFLOW_PAGES,
  ...PXE_PAGES,
  ...keysPages({ hasFind: false, sections: KEY_SECTIONS, examples: [] }),
]

interface LinePagesOptions {
  readonly version: string
  readonly assets: Assets
  readonly services: EarlierServices
  readonly runs: Pick<Runs, 'findRunning' | 'listRunning'>
  now(): Date
}

export function createLinePages(options: LinePagesOptions) {
  const { services, now } = options
  const { user, config } = services
  const clock = () => ({ now: now(), zone: config.current().display.timezone })
  const login = PAGES.earlier.login
  return createPages({
    ...options,
    nav: NAV,
    login: {
      label: fill(login.label, { user: printable(user) }),
      help: fillHtml(login.help, {
        user: html`<code>${printable(user)}</code>`,
        command: html`<code>passwd ${printable(user)}</code>`,
      }),
    },
    table: createTable(options, clock),
    contextOf: (base) => base,
    routes: ROUTES,
  })
}

function createTable(
  { services, runs, now }: LinePagesOptions,
  clock: () => Clock,
): ChannelViews<Machine> {
  const sources = { findRun: runs.findRunning, workflows: services.workflows.runs, now }
  const view = (machine: Machine) => viewMachine(machine, sources)
  return {
    match: createMatch({ context: createContext(runs, now), view, now }),
    // The table has the same columns for everybody.
    columnsOf: () => '',
    renderRow: (machine) => String(renderMachineRow(view(machine), clock())),
    isLate: (machine) => isOverdue(machine, now()),
    renderBar: (run) => String(renderBar(run)),
  }
}

/** New when a flash begins, ends or stalls, and each minute: a silent one may be overdue. */
function createContext(runs: LinePagesOptions['runs'], now: LinePagesOptions['now']): () => object {
  let [known, text] = [{}, '']
  return () => {
    const minute = Math.floor(now().getTime() / 60_000)
    const running = runs.listRunning().map(({ mac, stalled }) => [mac, stalled])
    const next = JSON.stringify([minute, running])
    if (text !== next) known = {}
    text = next
    return known
  }
}
