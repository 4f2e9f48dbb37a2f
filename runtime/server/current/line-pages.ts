/** Current line: its pages, its navigation and its machines table. */
import { fillHtml, html, type Content, type Html, address } from '#kit/web/ui/html.ts'
import { MAX_FIND } from '#kit/web/ui/layout.ts'
import { IMAGES, SECTIONS, type Tab } from '#kit/web/ui/rules/sections.ts'
import type { Assets } from '#kit/web/answers/assets.ts'
import type { Runs } from '#fleet/run/runs.ts'
import { type ContextRoute, keysPages, pageAt, formAt } from '#server/pages/context-routes.ts'
import { CALLS_PATH, chooseCalls, renderCallsSwitch } from '#server/pages/curl-block.ts'
import { createPages } from '#server/pages/site-pages.ts'
import type { ChannelViews } from '#server/updates/channel.ts'
import type { Site } from '#server/routes/site.ts'
import type { SeenServices } from './assembly/seen-services.ts'
import type { Machine } from './machines/rules/machine.ts'
import { BACKUP_PAGES } from './backups/backups-page.ts'
import { BATCH_PAGES } from './batches/batches-page.ts'
import { DASHBOARD_PAGES } from './dashboard/dashboard-page.ts'
import { DHCP_PAGES } from './netboot/dhcp-page.ts'
import { EVENT_PAGES } from './events/events-page.ts'
import { TEMPLATE_PAGES } from './first-boot/templates-page.ts'
import { CHANNEL_PAGES } from './channels/channels.ts'
import { CACHE_PAGES } from './images/cache-link.ts'
import { MACHINE_FILE_PAGES, MACHINE_FILE_PATH } from './machines/file-page.ts'
import { BULK_PAGES } from './machines/bulk.ts'
import { createMatch } from './machines/fleet-query.ts'
import { MACHINE_PAGES } from './machines/machine-page.ts'
import { MACHINES_PAGES } from './machines/machines-page.ts'
import { PRINT_PAGES } from './print/labels.ts'
import { NETBOOT_PAGES } from './netboot/netboot-page.ts'
import { NOTIFICATION_PAGES } from './notifications/notifications-page.ts'
import { RULE_PAGES } from './notifications/rule-form.ts'
import { ENTRY_PAGES } from './once/entries-page.ts'
import { PEOPLE_PAGES } from './people/people-page.ts'
import { withMachines, type CurrentContext, type CurrentServices } from './view/page-context.ts'
import { RUN_PAGES } from './runs/runs-page.ts'
import { ROLE_TEXTS } from '#kit/web/ui/who.ts'
import { accountPages } from '#server/pages/account/account.ts'
import { TIMELINE_PAGE } from './machines/timeline.ts'
import { SETTINGS_PAGES } from './settings/settings-page.ts'
import { parseColumns, renderColumns, renderMachineRow } from './view/machine-row.ts'
import { hasPower } from './power/power-card.ts'
import { viewMachine, aboutImage } from './view/machine-view.ts'
import { renderBar } from '#server/pages/machines/machines-list.ts'
import { page, type Answer } from '#kit/web/answers/answers.ts'
import { card, emptyState, icon } from '#kit/web/ui/elements.ts'
import { searchField } from '#kit/web/ui/tables.ts'
import {
  FIND_GROUPS,
  findMachines,
  splitFind,
  type FoundLink,
  type FoundGroup,
  hasWords,
} from './machines/find-machines.ts'
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '#kit/web/access/rules/login-throttle.ts'
import type { Origin } from '#kit/config/rules/settings-parser.ts'
import type { PasswordRefusal } from '#kit/web/access/password-check.ts'
import { personOf } from '#kit/web/answers/caller.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { textField } from '#kit/web/ui/fields.ts'
import { findPasswordOrigin } from './assembly/configuration.ts'
import { fill } from '#kit/foundation/text.ts'
import { KEYS_PATH } from '#kit/web/ui/keys-page.ts'
import { keywordsOf } from './machines/image-cards.ts'

const MAX_ROWS = 6

interface PageLink extends Tab {
  readonly about?: string
  /** The route that permits it; absent: the page's own. */
  readonly takes?: readonly ['GET' | 'POST', string]
}

/** For pages that no section names. */
const PAGE_LINKS: readonly PageLink[] = [
  ...SECTIONS.flatMap(({ tabs = [], ...section }) => [section, ...tabs.slice(1)]),
  { href: '/ui/machines?view=wall', title: 'Wall', takes: ['GET', '/ui/machines'] },
  { href: '/ui/machines/labels', title: 'Print labels' },
  { href: MACHINE_FILE_PATH, title: 'Import CSV' },
  { href: KEYS_PATH, title: 'Keyboard shortcuts' },
  { href: '/docs/api', title: 'API', takes: ['GET', '/ui/account'] },
]

const post = (
  href: string,
  title: string,
  also: string,
  path: string,
  about?: string,
): PageLink => ({ href, title, also, takes: ['POST', path], ...(about && { about }) })

const SELECT = 'Select them, then Actions'

const RESTART = post(
  '/ui/machines',
  'Restart machines',
  'reboot power turn on off',
  '/ui/machines/:mac/do/power',
  SELECT,
)

const ACTIONS: readonly PageLink[] = [
  post('/ui/machines#add', 'Add a machine', 'new create', '/ui/machines'),
  post('/ui/machines', 'Arm machines', 'flash write erase disarm', '/ui/machines/bulk', SELECT),
  RESTART,
  post(IMAGES, 'Add an image', 'upload download catalog', IMAGES),
  post('/ui/netboot', 'Install a live system', 'fetch release', '/ui/netboot/fetch-release'),
  post('/ui/backups', 'Make a backup', 'save export', '/ui/backups'),
  post('/ui/backups', 'Restore a backup', 'recover import', '/ui/backups/:id/restore'),
  post('/ui/backups#backup-schedule', 'Schedule backups', 'daily', '/ui/settings/backup'),
  post('/ui/first-boot?new=1', 'Make a first-boot template', 'new cloud-init', '/ui/first-boot'),
  post('/ui/channels#form', 'Add a channel', 'new create', '/ui/channels/save'),
  post('/ui/account#tokens', 'Create an API token', 'new key', '/ui/account/tokens'),
  post('/ui/people/add', 'Add a person', 'user invite new', '/ui/people'),
  post('/ui/people/provider', 'Set up login with a provider', 'oidc sso', '/ui/people/provider'),
  post('/ui/notifications#add', 'Add a receiver', 'notification', '/ui/notifications/add/:kind'),
  post('/ui/settings#ramboot', 'Connect a cache', 'settings', '/ui/settings/upstream'),
  post('/ui/settings#power.networks', 'Set up power control', 'restart', '/ui/settings/config'),
  post('/ui/account', 'Change the password', 'settings', '/ui/account/password'),
]

/** Only pages that are open to the requester. */
const findPages = (context: CurrentContext, words: readonly string[]): readonly FoundLink[] =>
  select(context, PAGE_LINKS, words)

/** Only what the role permits. */
const findActions = (context: CurrentContext, words: readonly string[]): readonly FoundLink[] =>
  select(
    context,
    ACTIONS.filter((link) => link !== RESTART || hasPower(context)),
    words,
  )

const select = (
  { site, event }: CurrentContext,
  links: readonly PageLink[],
  words: readonly string[],
): readonly FoundLink[] =>
  links
    .filter(({ title, also = '', href, takes: [method, path] = ['GET', href] }) => {
      return hasWords(`${title} ${also}`, words) && site.mayOpen(event, path, method)
    })
    .map(({ href, title, about }) => ({ href, title, about }))

const findImages = ({ services }: CurrentContext, words: readonly string[]): readonly FoundLink[] =>
  words.length === 0
    ? []
    : services
        .images()
        .filter((image) => hasWords(keywordsOf(image), words))
        .slice(0, MAX_ROWS)
        .map((image) => ({
          href: address('/ui/machines', { q: `image:"${image.name}"` }),
          title: image.name,
          about: aboutImage(image),
        }))

/** For those who may see their page; each leads to what they did. */
function findPeople(context: CurrentContext, words: readonly string[]): readonly FoundLink[] {
  const { site, event } = context
  if (words.length === 0 || !site.mayOpen(event, '/ui/people')) return []
  const people = site.people?.store.list() ?? []
  return people
    .filter(({ name }) => hasWords(name, words))
    .slice(0, MAX_ROWS)
    .map(({ name, role }) => ({
      href: address('/ui/events', { person: name }),
      title: `What ${name} did`,
      about: role === null ? 'None' : ROLE_TEXTS[role].title,
    }))
}

/** For those who may see their page; by title, name and explanation. */
function findSettings(context: CurrentContext, words: readonly string[]): readonly FoundLink[] {
  const { site, event, services } = context
  const wanted = words.filter((word) => !/^settings?$/.test(word))
  if (wanted.length === 0 || !site.mayOpen(event, '/ui/settings')) return []
  const rows = services.config.list()
  const named = rows.filter(({ name, setting }) => hasWords(`${setting.title} ${name}`, wanted))
  const explained = rows.filter(({ setting }) =>
    hasWords(`${setting.title} ${setting.help}`, wanted),
  )
  return [...new Set([...named, ...explained])].slice(0, MAX_ROWS).map(({ name, setting }) => ({
    href: `/ui/settings#${name}`,
    title: setting.title,
    about: name,
  }))
}

const PATH = '/ui/account'

const FIELDS = ['current', 'password', 'repeated'] as const
type PasswordField = (typeof FIELDS)[number]

const PASSWORD_POSTS = [formAt(`${PATH}/password`, 'own', changePassword, { reach: 'shared' })]

function renderPassword(context: CurrentContext): Html {
  if (isOfProvider(context))
    return card({
      title: 'Password',
      body: html`<p>You log in with a provider. Change your password there.</p>`,
    })
  const origin = findOrigin(context)
  return card({
    title: 'Password',
    id: 'change-password',
    body: origin === null ? renderForm(context) : renderOrigin(origin),
  })
}

function isOfProvider({ site, event }: CurrentContext): boolean {
  const id = personOf(site.caller(event))?.id
  const person = id === undefined ? null : (site.people?.store.find(id) ?? null)
  return person !== null && person.provider !== null
}

const findOrigin = ({ site, event, services }: CurrentContext): Origin | null =>
  personOf(site.caller(event)) === null ? findPasswordOrigin(services.config) : null

const renderOrigin = (origin: Origin): Html =>
  html`<p>${describeOrigin(origin)}</p>
    <p class="small dim">
      ${fillHtml('Remove it there to change the password on this page or with {command}.', { command: html`<code>flasher-web password</code>` })}
    </p>`

function describeOrigin(origin: Origin): Content {
  if (origin.by === 'environment')
    return fillHtml(
      'The password is set by the environment variable {variable}. Change it there and restart the server.',
      {
        variable: html`<code>${origin.variable}</code>`,
      },
    )
  if (origin.by === 'file')
    return fillHtml(
      'The password is set in {path}. Change it there and reload the configuration.',
      { path: html`<code>${origin.path}</code>` },
    )
  return 'The password is set in the configuration. Change it there and reload the configuration.'
}

function renderForm(context: CurrentContext): Html {
  const notice = context.notice()
  const field = (
    name: PasswordField,
    label: string,
    more: Partial<Parameters<typeof textField>[0]> = {},
  ) =>
    textField({
      name,
      label,
      type: 'password',
      autocomplete: 'new-password',
      required: true,
      error: notice?.typed['at'] === name ? notice.error : null,
      ...more,
    })
  return html`<form method="post" action="${PATH}/password" class="narrow">
    <input name="username" value="${nameOf(context)}" autocomplete="username" hidden />
    ${field('current', 'Current password', { autocomplete: 'current-password' })}
    ${field('password', 'New password', {
      maxLength: MAX_PASSWORD_LENGTH,
      hint: `At least ${MIN_PASSWORD_LENGTH} characters.`,
    })}
    ${field('repeated', 'Repeat new password')}
    <button class="primary">Change password</button>
    <p class="hint">Ends all other sessions. API tokens stay valid.</p>
  </form>`
}

/** For password managers. */
const nameOf = ({ site, event }: CurrentContext): string =>
  personOf(site.caller(event))?.name ?? 'administrator'

async function changePassword(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  if (findOrigin(context) !== null) {
    throw refuse(409, 'the configuration sets the password: change it there')
  }
  if (isOfProvider(context)) throw refuse(409, 'the provider knows the password: change it there')
  const [current = '', password = '', repeated = ''] = FIELDS.map((name) => form.get(name) ?? '')
  const changed = await context.site.changePassword(context.event, { current, password, repeated })
  if (changed.ok) return context.goTo(`${PATH}?changed=password`)
  const { at, error } = describeRefusal(changed.refusal)
  // What was typed is not kept: browsers keep pages.
  return context.goBack(PATH, { error, typed: { at }, anchor: 'change-password' })
}

const PASSWORD_ERRORS = {
  wait: 'Too many attempts: try again in {seconds} s.',
  wrong: 'Wrong password.',
  elsewhere: 'The password is changed in the operating system.',
  unchanged: 'The new password is the same as the current one.',
  tooShort: 'Enter at least {count} characters.',
  tooLong: 'Enter at most {count} characters.',
  controlCharacters: 'The password may not contain control characters.',
  differs: 'The two passwords are different.',
} as const

function describeRefusal(refusal: PasswordRefusal): {
  readonly at: PasswordField
  readonly error: string
} {
  switch (refusal.why) {
    case 'wait':
      return {
        at: 'current',
        error: fill(PASSWORD_ERRORS.wait, { seconds: refusal.seconds }),
      }
    case 'wrong':
    case 'elsewhere':
      return { at: 'current', error: PASSWORD_ERRORS[refusal.why] }
    case 'too-short':
      return {
        at: 'password',
        error: fill(PASSWORD_ERRORS.tooShort, { count: MIN_PASSWORD_LENGTH }),
      }
    case 'too-long':
      return {
        at: 'password',
        error: fill(PASSWORD_ERRORS.tooLong, { count: MAX_PASSWORD_LENGTH }),
      }
    case 'unchanged':
      return { at: 'password', error: PASSWORD_ERRORS.unchanged }
    case 'control-characters':
      return { at: 'password', error: PASSWORD_ERRORS.controlCharacters }
    case 'differs':
      return { at: 'repeated', error: PASSWORD_ERRORS.differs }
  }
}

// /ui/find: one search of machines, labels, images, people, settings, pages and actions; and the list of its dialog.

const FIND_PATH = '/ui/find'

const FIND_PAGES = [pageAt(FIND_PATH, 'read', show, { reach: 'list' })]

async function show(context: CurrentContext): Promise<Answer> {
  const text = (context.query.get('q') ?? '').slice(0, MAX_FIND)
  const groups = await findAll(context, text)
  // For the dialog, while somebody types.
  if (context.query.has('list')) return page(String(renderOptions(groups)))
  return await context.show({
    title: 'Search',
    body: html`<div class="tools">
        <form class="search" role="search" action="${FIND_PATH}">
          ${searchField({ name: 'q', value: text, label: 'Search everything', placeholder: 'MAC, serial number, name, label, image, setting or action' })}
          <button>${icon('search')}Search</button>
        </form>
      </div>
      ${groups.length === 0 ? emptyState('No results', 'No machine, disk, label, image, person, setting, page or action has this name.') : null}
      <div class="stack found">${groups.map(renderGroup)}</div>`,
  })
}

async function findAll(context: CurrentContext, text: string): Promise<readonly FoundGroup[]> {
  const words = splitFind(text)
  const { machines, deeds, labels } = await findMachines(context, text)
  const groups: readonly FoundGroup[] = [
    { name: 'machines', rows: machines },
    { name: 'actions', rows: [...deeds, ...findActions(context, words)] },
    { name: 'labels', rows: labels },
    { name: 'images', rows: findImages(context, words) },
    { name: 'people', rows: findPeople(context, words) },
    { name: 'settings', rows: findSettings(context, words) },
    { name: 'pages', rows: findPages(context, words) },
  ]
  return groups.filter(({ rows }) => rows.length > 0)
}

const renderGroup = ({ name, rows }: FoundGroup): Html =>
  card({
    title: FIND_GROUPS[name],
    body: html`<ul class="rows">
      ${rows.map(
        (row) =>
          html`<li>
            <a class="grow" href="${row.href}">${renderTitle(row)}</a>${renderAbout(row)}
          </li>`,
      )}
    </ul>`,
  })

const renderOptions = (groups: readonly FoundGroup[]): Html =>
  html`${groups.map(
    ({ name, rows }) =>
      html`<div role="group" aria-label="${FIND_GROUPS[name]}">
        <p aria-hidden="true">${FIND_GROUPS[name]}</p>
        ${rows.map(
          (row) =>
            html`<a role="option" tabindex="-1" href="${row.href}"
              >${renderTitle(row)}${renderAbout(row)}</a
            >`,
        )}
      </div>`,
  )}`

const renderTitle = ({ title }: FoundLink): Html => html`<bdi>${title}</bdi>`

const renderAbout = ({ about }: FoundLink): Content =>
  about === undefined || about === '' ? null : html` <span class="small dim">${about}</span>`

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
  ...ENTRY_PAGES,
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
  formAt(CALLS_PATH, 'own', (_context: CurrentContext, form) => chooseCalls(form), {
    reach: 'shared',
  }),
  ...keysPages({ hasFind: true, sections: SECTIONS, examples: EXAMPLES }),
]

interface LinePagesOptions {
  readonly version: string
  readonly assets: Assets
  readonly services: CurrentServices
  seen(site: Site<Machine>): SeenServices
  readonly runs: Runs
  now(): Date
}

export const createLinePages = (options: LinePagesOptions) =>
  createPages({
    ...options,
    nav: SECTIONS,
    find: FIND_PATH,
    foot: renderCallsSwitch,
    login: {
      label: 'Administrator password',
      help: fillHtml(
        'On the server, run {command} to set a new password. This ends all sessions. The first start printed the initial password.',
        { command: html`<code>flasher-web password</code>` },
      ),
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
    const next = JSON.stringify([sets(), settings, runs.marks(), runs.writtenVersion()])
    if (listed !== services.images() || text !== next) known = {}
    ;[listed, text] = [services.images(), next]
    return known
  }
}
