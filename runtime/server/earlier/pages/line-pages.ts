/** Earlier line: its pages, its navigation and its machines table. */
import type { Runs } from '#fleet/run/runs.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { Assets } from '#kit/web/answers/assets.ts'
import { fillHtml, html, type Html, address, attributes, type Content } from '#kit/web/ui/html.ts'
import type { Section } from '#kit/web/ui/rules/sections.ts'
import { type Clock, renderTime } from '#kit/web/ui/times.ts'
import { type ContextRoute, keysPages, pageAt, formAt } from '#server/pages/context-routes.ts'
import { createPages } from '#server/pages/site-pages.ts'
import type { ChannelViews } from '#server/updates/channel.ts'
import {
  type Machine,
  BOOT_POLICIES,
  isArmed,
  isUnassigned,
  WORKFLOW_STATUSES,
} from '../rules/machine.ts'
import { BOOT_PAGES } from './boot.ts'
import { DASHBOARD_PAGE } from './dashboard.ts'
import { IMAGE_PAGES } from './images.ts'
import {
  renderBar,
  addMachine,
  MACHINES_PATH,
  renderFound,
  renderFleetTable,
  renderFoldedAddForm,
  renderGone,
  renderNoMachines,
  renderNoneFound,
  renderMistakes,
  renderStateBadge,
  renderNameCell,
  nameDisk,
  shortDisk,
} from '#server/pages/machines/machines-list.ts'
import {
  viewMachine,
  type EarlierContext,
  type EarlierServices,
  viewOf,
  type StatedMachine,
  nameOf,
} from './machine-view.ts'
import { isOverdue } from '../rules/state.ts'
import { MACHINE_PAGES } from './machine.ts'
import { PROVISION_PAGES } from './provision.ts'
import { PXE_PAGES, renderPxe } from './pxe.ts'
import { WORKFLOW_PAGES } from './workflow.ts'
import { renderError } from '#kit/foundation/fault.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import {
  banner,
  card,
  copyable,
  copyBlock,
  progress,
  refreshOnNews,
  tag,
} from '#kit/web/ui/elements.ts'
import { accountPages } from '#server/pages/account/account.ts'
import { filePosts } from '#server/pages/settings/file-posts.ts'
import {
  SETTINGS_PATH,
  showSettings,
  type SettingsView,
} from '#server/pages/settings/settings-list.ts'
import {
  cutPage,
  renderPager,
  readListQuery,
  renderSearch,
  type ListQuery,
} from '#kit/web/ui/tables.ts'
import { createSelector, type Description, type Vocabulary } from '#fleet/machine/rules/query.ts'
import { listStateNames, urgencyOf } from '#fleet/machine/rules/states.ts'
import { MACHINE_PROVISIONING } from '#fleet/workflow/rules/online-workflow.ts'
import { listSpellings, renderHyphens } from '#kit/net/rules/mac.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'

/** The first click on a time sorts from the newest. */
const COLUMNS = [
  { title: 'State', className: 'state', key: 'state' },
  { title: 'Machine', className: 'name', key: 'name' },
  { title: 'Now and next', className: 'will', key: 'next' },
  { title: 'Image', className: 'image', key: 'image' },
  { title: 'Flashed disk', className: 'disk', key: '-flashed' },
  { title: 'Seen', className: 'time seen', key: '-seen' },
] as const

const renderMachineRow = ({ machine, view, run, disk }: StatedMachine, clock: Clock): Html =>
  html`<tr id="row-${renderHyphens(machine.mac)}">
    <td class="state">${renderStateBadge(view)}</td>
    ${renderNameCell(machine.mac, printable(nameOf(machine)))}
    <td class="will" data-label="Next boot">${renderDoing({ machine, view, run, disk })}</td>
    <td class="image" data-label="Image">
      ${machine.image === null ? tag('discovered') : html`<span class="cut" title="${printable(machine.image)}"><bdi>${printable(machine.image)}</bdi></span>`}
      ${renderProvisioning(machine)}
    </td>
    <td class="disk" data-label="Flashed disk">
      ${disk === null ? null : html`<span class="model" title="${nameDisk(disk)}">${shortDisk(disk)}</span>`}
      <span class="dim">${renderTime(machine.last_flashed_at, clock, 'never')}</span>
    </td>
    <td class="time seen" data-label="Seen">${renderTime(machine.last_seen_at, clock, 'never')}</td>
  </tr>`

function renderProvisioning({ provisioning_mode: mode, last_workflow_status }: Machine): Content {
  const status = last_workflow_status === null ? null : tag(last_workflow_status)
  return mode === 'none' && status === null
    ? null
    : html`<span class="small dim">${mode} ${status}</span>`
}

const POLICIES = {
  local: 'boots its own disk',
  flash: 'flash, at every network boot',
  tui: 'asks at the machine',
} as const

function renderDoing({ machine, view: { state, is, next }, run }: StatedMachine): Content {
  if (run !== null) return renderBar(run)
  if (state === 'running') return progress(null, null, is)
  const isTrouble = state === 'failed' || state === 'needs-you'
  return html`<span title="${is} ${next}">${isTrouble ? is : POLICIES[machine.boot_policy]}</span>`
}

interface SearchedFleet {
  /** A new object whenever anything besides the machine changed that states depend on. */
  context(): object
  view(machine: Machine): StatedMachine
  now(): Date
}

const VOCABULARY: Vocabulary = {
  fields: ['mac', 'hostname', 'state', 'policy', 'image', 'provisioning', 'workflow', 'ip', 'is'],
  times: ['seen', 'flashed', 'discovered'],
  values: {
    state: listStateNames(),
    policy: BOOT_POLICIES,
    provisioning: MACHINE_PROVISIONING,
    workflow: WORKFLOW_STATUSES,
    is: ['discovered', 'assigned', 'armed'],
  },
}

/** `q` and `sort` of an address; `filter=discovered` is the deployed spelling. */
export function createMatch({ context, view, now }: SearchedFleet) {
  const select = createSelector<Machine, object>({
    vocabulary: VOCABULARY,
    describe: (machine) => describe(view(machine)),
  })
  return (machines: readonly Machine[], query: URLSearchParams): readonly Machine[] => {
    const filter = query.get('filter') === 'discovered' ? 'is:discovered' : ''
    const text = `${query.get('q') ?? ''} ${filter}`.trim()
    return select(
      machines,
      { text, sort: query.get('sort') },
      { context: context(), now: now().getTime() },
    )
  }
}

function describe({ machine, view }: StatedMachine): Description {
  const { mac, image, last_seen_ip: ip } = machine
  const hostname = machine.hostname ?? ''
  const times = timesOf(machine)
  return {
    text: [...listSpellings(mac), hostname, image, ip, view.is].filter(Boolean).join(' '),
    fields: {
      mac: listSpellings(mac),
      hostname: [hostname],
      state: listStateNames(view.state),
      policy: [machine.boot_policy],
      image: [image ?? ''],
      provisioning: [machine.provisioning_mode],
      workflow: [machine.last_workflow_status ?? ''],
      ip: [ip ?? ''],
      is: [
        isUnassigned(machine) ? 'discovered' : 'assigned',
        ...(isArmed(machine) ? ['armed'] : []),
      ],
    },
    times,
    order: {
      ...times,
      state: urgencyOf(view.state),
      name: hostname === '' ? `\uffff${mac}` : naturalKey(hostname),
      next: BOOT_POLICIES.indexOf(machine.boot_policy),
      image: image === null ? null : naturalKey(image),
    },
  }
}

const timesOf = ({ last_seen_at, last_flashed_at, discovered_at }: Machine) => ({
  seen: millis(last_seen_at),
  flashed: millis(last_flashed_at),
  discovered: millis(discovered_at),
})

const millis = (iso: string | null) => (iso === null ? null : Date.parse(iso))

/** /ui/machines: the fleet in one live table, with a search. */

const PATH = MACHINES_PATH

const FLEET_PAGES = [
  pageAt(PATH, 'read', showMachines, { reach: 'list' }),
  formAt(PATH, 'machines', addMachine, { reach: 'list' }),
]

async function showMachines(context: EarlierContext): Promise<Answer> {
  const { site } = context
  const query = readListQuery(context.query, ['q', 'filter', 'sort', 'page'], 1000)
  const all = await site.machines.list()
  const count = (q: string) => site.views.match(all, new URLSearchParams({ q })).length
  // Default: by state if something failed.
  const sort = query['sort'] ?? (count('state:failed') > 0 ? 'state' : null)
  const sorted = sort === null ? query : { ...query, sort }
  const found = site.views.match(all, new URLSearchParams(sorted))
  const page = cutPage(found, context.query)
  const clock = context.clock()
  return await context.show({
    title: 'Machines',
    count: html`<span
      ${attributes({ 'hx-select-oob': all.length === 0 ? null : '#views:morph' })}
      ${refreshOnNews('count', address(PATH, query), 2000)}
      >${renderFound(found.length, all.length)}</span
    >`,
    updates: address('/events/machines', { q: '', page: 1, ...sorted }),
    messages: html`${context.message()}${renderGone(context.query)}`,
    body: html`${all.length === 0 ? null : renderTools(query, count)}
      <form>
        ${renderFleetTable({
          query: sorted,
          columns: COLUMNS,
          rows: page.rows.map((machine) => renderMachineRow(viewOf(context, machine), clock)),
        })}
      </form>
      ${
        all.length === 0
          ? renderNoMachines(context.contact().baseUrl)
          : found.length === 0
            ? renderNoneFound()
            : renderPager(PATH, query, page)
      }
      ${renderFoldedAddForm()}`,
  })
}

const VIEWS = [
  ['All', ''],
  ['Needs attention', 'state:needs-attention,failed'],
  ['Failed', 'state:failed'],
  ['Discovered', 'is:discovered'],
  ['Armed', 'state:armed'],
  ['Running', 'state:running'],
  ['Done', 'state:done'],
  ['Flash at every boot', 'policy:flash'],
] as const

const renderTools = (
  { page: _page, filter: _filter, ...kept }: ListQuery,
  count: (q: string) => number,
): Html =>
  html`${renderSearch({
    path: PATH,
    query: kept,
    name: 'q',
    label: 'Search machines',
    placeholder: 'box-1  state:failed  image:debian*  seen:<1h',
    views: VIEWS.map(([title, q]): [string, ListQuery, number] => [
      title,
      { ...kept, q },
      count(q),
    ]),
  })}
  ${renderMistakes(kept, VOCABULARY)}`

/** /ui/settings and /ui/account: what this line adds to the pages of both lines. */
const SETTINGS_PAGES = [
  pageAt(SETTINGS_PATH, 'admin', show),
  ...filePosts(),
  ...accountPages((context: EarlierContext) =>
    card({
      title: 'Authentication',
      id: 'authentication',
      body: renderAuthentication(context),
    }),
  ),
]

async function show(context: EarlierContext): Promise<Answer> {
  return await showSettings(context, async (view) => ({
    first: card({
      title: 'Set up this server',
      id: 'this-server',
      body: await renderCards(context, view),
    }),
    front: null,
    last: null,
  }))
}

async function renderCards(context: EarlierContext, { search }: SettingsView): Promise<Html> {
  const boot = html`<p>
      Point the DHCP server at the bootstrap script, for machines that run iPXE:
    </p>
    <p>${copyable(`${context.contact().baseUrl}/pxe-bootstrap.ipxe`)}</p>`
  return html`${search.fold('authentication password login user session passwd', { title: 'Authentication', id: 'authentication', body: renderAuthentication(context) })}
  ${search.fold('pxe dhcp proxy dnsmasq tftp interface subnet secure boot', { title: 'PXE proxy-DHCP', id: 'pxe', ...(await renderPxe(context)) })}
  ${search.fold('network boot bootstrap dhcp ipxe', { title: 'Bootstrap script', id: 'bootstrap', body: boot })}
  ${search.fold('ssh key workflow cijoe-online public', { title: 'SSH key for workflows', id: 'ssh-key', body: await renderKey(context) })}`
}

/** Creates the key pair where there is none. */
async function renderKey({ services }: EarlierContext): Promise<Html> {
  const [key] = await Promise.allSettled([services.workflows.keys.ensure()])
  return key.status === 'rejected'
    ? banner('failed', `There is no key: ${printable(renderError(key.reason))}.`)
    : html`<p>
          ${fillHtml(
            'Workflows that run from this server log in to machines as root with this key. Put it into {file} of their images.',
            { file: html`<code>/root/.ssh/authorized_keys</code>` },
          )}
        </p>
        ${copyBlock(key.value.publicLine, 'Public key')}`
}

const renderAuthentication = ({ services: { user } }: EarlierContext): Html =>
  html`<p>
      ${fillHtml(
        'Log in to these pages and the API with the password of the user {user} on this server. Change it there with {command}.',
        {
          user: html`<code>${printable(user)}</code>`,
          command: html`<code>passwd ${printable(user)}</code>`,
        },
      )}
    </p>
    <p>
      ${fillHtml('A session ends after seven days without use. To end all sessions, delete {file} in the state folder.', { file: html`<code>session-secret</code>` })}
    </p>
    <p class="dim">
      ${'Boot scripts, boot files and images are open to anyone who can reach this server, because booting machines cannot log in.'}
    </p>`

const NAV: readonly Section[] = [
  { href: '/ui/dashboard', title: 'Dashboard', icon: 'dashboard', key: 'd' },
  { href: '/ui/machines', title: 'Machines', icon: 'machines', key: 'm' },
  { href: '/ui/images', title: 'Images', icon: 'image', key: 'i' },
  { href: '/ui/boot', title: 'Boot files', icon: 'netboot', key: 'n' },
  { href: '/ui/settings', title: 'Settings', icon: 'settings', key: 's' },
]

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
  ...keysPages({ hasFind: false, sections: NAV, examples: [] }),
]

interface LinePagesOptions {
  readonly version: string
  readonly assets: Assets
  readonly services: EarlierServices
  readonly runs: Pick<Runs, 'findRunning' | 'findWritten' | 'listRunning'>
  now(): Date
}

export function createLinePages(options: LinePagesOptions) {
  const { services, now } = options
  const { user, config } = services
  const clock = () => ({ now: now(), zone: config.current().display.timezone })
  return createPages({
    ...options,
    nav: NAV,
    login: {
      what: 'earlier line',
      label: `Password of ${printable(user)}`,
      help: fillHtml(
        'It is the password of the user {user} on the server. An administrator of that system sets a new one with {command}.',
        {
          user: html`<code>${printable(user)}</code>`,
          command: html`<code>passwd ${printable(user)}</code>`,
        },
      ),
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
  const sources = { runs, workflows: services.workflows.runs, now }
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
