/** The machine server: every URL in one table, with the rules of a release line. */
import type { H3, H3Event } from 'h3'
import {
  type ErrorView,
  boundsOf,
  callerOf,
  peerOf,
  type RecordEvents,
} from '#kit/web/answers/caller.ts'
import type { SiteViews } from '#kit/web/ui/site-views.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import {
  createPasswordCheck,
  createAttempts,
  createPasswordChange,
  type PeoplePasswords,
} from '#kit/web/access/password-check.ts'
import { bootFileRoutes } from './boot-files.ts'
import { bulkRoutes } from './bulk.ts'
import { createChannel } from '#server/updates/channel.ts'
import { contactRoutes, createAdmission, createContactReader } from './contact.ts'
import { createApp, createNarrowing } from '#kit/web/http/dispatch.ts'
import { refuse, refuseFields } from '#kit/web/answers/faults.ts'
import { eventRoutes } from './events.ts'
import { createFleet, createEventRecorder } from './fleet.ts'
import { createAccounts, type Accounts } from '#fleet/access/accounts.ts'
import { createOwnedTokens } from '#fleet/access/owned-tokens.ts'
import { createProviderLogins } from '#server/openid/provider-logins.ts'
import { createGuard, renderBy, type Guard, createTokenCheck } from '#kit/web/access/guard.ts'
import { createEditBounds } from './rules/edit-bounds.ts'
import { createSeenJournal } from '#fleet/state/journal.ts'
import { createSeenMachines } from '#fleet/state/machines.ts'
import { createSeenRuns } from '#fleet/run/runs.ts'
import type { Bounds } from '#kit/web/answers/rules/rights.ts'
import { healthRoutes, createMetrics, timeRoute } from '#kit/web/http/metrics.ts'
import type {
  ServerBase,
  ServerPlugin,
  ServerServices,
  Site,
  PeopleServices,
  UpsertRefusal,
} from './site.ts'
import { updateRoutes } from '#server/updates/update-routes.ts'
import { createRelogin, loginRoutes, type NamedLogins } from '#kit/web/access/login.ts'
import { metricsRoutes } from './metrics-route.ts'
import { createNotices } from '#kit/web/ui/form-notices.ts'
import { docsRoute } from './docs-site.ts'
import { documentRoutes } from './openapi.ts'
import { createClientSeal, createPassedReader, createPeers } from '#kit/web/http/entrance.ts'
import { reachOf, type Route } from '#kit/web/answers/route.ts'
import { countRun, renderLost, runRoutes, runPostRoutes } from './runs.ts'
import { createSessions, type Sessions } from '#kit/web/access/session.ts'
import { createTypedForms, type TypedForms } from '#kit/web/access/typed-forms.ts'
import { signalRoutes } from './signals.ts'
import { tokenRoutes } from './tokens.ts'
import { parseMac, type Mac, renderHyphens } from '#kit/net/rules/mac.ts'
import { allowsNamelessLogin } from '#fleet/access/rules/person.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { isSameIssuer } from '#kit/net/openid/rules/provider-failure.ts'
import { createHash } from 'node:crypto'
import { json, nothing, answer, type Answer } from '#kit/web/answers/answers.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { meetsConditions } from '#kit/web/answers/rules/content-coding.ts'

export interface ServerOptions<M extends MachineBase> extends ServerServices<M> {
  readonly plugins: readonly ServerPlugin<M>[]
}

/** It does not listen yet. */
export function createServer<M extends MachineBase>(options: ServerOptions<M>) {
  const { views, runs, log } = options
  const { people } = options
  const sessions = createSessions({
    ...options,
    ...(people !== undefined && { allowsNameless: () => allowsNameless(people) }),
  })
  // Bearers are no passwords here: a program with an expired token locks nobody out.
  const [attempts, guesses] = [createAttempts(options.elapsed), createAttempts(options.elapsed)]
  const recordAll = createEventRecorder(options)
  const owned = createOwnedTokens(options.tokens, options.people?.store)
  const tokens = createTokenCheck({ tokens: owned, attempts: guesses, recordAll })
  const guard = createGuard({ sessions, tokens })
  const check = createPasswordCheck({ attempts, checkPassword: options.checkPassword })
  const typed = createTypedForms(options)
  const { accounts, ...logins } = createPeopleLogins({ ...options, typed }, sessions, recordAll)
  const ofPeople = logins.named
  const changePassword = createPasswordChange({ ...options, sessions, check, recordAll, ofPeople })
  const metrics = createMetrics()
  const site = createSite(
    { ...options, metrics, recordAll, changePassword, accounts },
    { guard, findRoute: (name) => byName.get(name) },
  )
  const channel = createChannel({ ...site, views })
  const added = options.plugins.map((plugin) => plugin(site))
  runs.onLost(async (run) => {
    countRun(site.metrics, run)
    await recordAll([renderLost(run)], { subject_id: run.mac, actor: 'system', ip: null })
  })

  const login = {
    ...site,
    ...logins,
    sessions,
    check,
    typed,
    onEnd: channel.sweep,
    app: () => app,
  }
  const schemas = Object.assign({}, ...added.map((part) => part.schemas))
  const makeSeenRoutes = (seen: Site<M>): readonly Route[] => [
    ...machineRoutes(seen), //            /machines /machines/:mac /lshw.json /disks.json
    ...bulkRoutes(seen), //               /machines/:mac/flash /machines/bulk
    ...runRoutes(seen), //                /runs /runs.csv /runs.json /machines/:mac/runs /:id /:id/log
    ...eventRoutes(seen), //              /events /events/:id/ack /events/ack
    ...updateRoutes(seen, channel), //      /events/machines
    ...added.flatMap((part) => part.routes?.(seen) ?? []),
  ]
  const routes: readonly Route[] = [
    // Open: machines hold no cookie, and monitoring should need none.
    ...healthRoutes(options.version, () => findObstacle(options)), // /healthz /version
    ...contactRoutes(site), //            /pxe-bootstrap.ipxe /pxe/:mac /plan
    ...signalRoutes(site), //             /pxe/:mac/inventory /done /status
    ...runPostRoutes(site), //            /pxe/:mac/progress /pxe/:mac/log
    ...bootFileRoutes(site), //           /boot/:name (PUT: admin)
    ...documentRoutes(site, schemas, () => routes), // /openapi.json /docs/api
    docsRoute(), //                   /docs/
    ...tokenRoutes(site), //              /tokens /tokens/:id
    ...metricsRoutes(site, channel.count), // /metrics
    ...loginRoutes(login), //             / /ui /ui/login /ui/logout
    ...logins.providerRoutes, //                 /ui/login/openid /callback /finish
    ...makeSeenRoutes(site),
  ]
  const byName = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]))

  const app: H3 = createApp({
    routes,
    guard,
    findPeer: createPeers(options.settings, openPassedReader(options)),
    reachOf,
    narrow: createNarrowing((bounds) => makeSeenRoutes(scopeSite(site, bounds))),
    confirmRead: options.confirmRead,
    relogin: createRelogin(login),
    failures: {
      log,
      renderError: (view, event) => renderFailure(site, views, view, event),
    },
    timeRoute: (method, path) => timeRoute(site.metrics, method, path),
  })
  return {
    /** For listeners with `createEntrance(app, log)`, for tests with `app.request()`. */
    app,
    site,
    routes,
    listeners: channel.count,
    /** So that connections can be closed. */
    close: channel.close,
  }
}

function createPeopleLogins<M extends MachineBase>(
  options: ServerOptions<M> & { readonly typed: TypedForms },
  sessions: Sessions,
  recordAll: RecordEvents,
) {
  const { people, tokens, journal } = options
  if (people === undefined)
    return { accounts: null, named: undefined, providers: undefined, providerRoutes: [] }
  const { store, provider, configured } = people
  const { record } = journal
  const accounts = createAccounts({ people: store, tokens, record })
  const named = createNamedLogins(people, accounts)
  const parts = { ...options, store, provider, configured, named, sessions, recordAll }
  const { providers, routes: providerRoutes } = createProviderLogins(parts)
  return { accounts, named, providers, providerRoutes }
}

function openPassedReader({
  leader = null,
  memberKey: key = '',
}: Pick<ServerServices, 'leader' | 'memberKey'>) {
  if (leader === null) return null
  const { cluster, epoch } = leader.lease
  return createPassedReader(createClientSeal({ key, cluster }), String(epoch))
}

/** Whether the database is away, without its address. */
function findObstacle({ leader = null }: Pick<ServerServices, 'leader'>): string | null {
  if (leader === null) return null
  const isLeading = leader.trouble() === null && leader.ended() === null
  return isLeading ? null : 'the database of the fleet does not answer'
}

function createSite<M extends MachineBase>(
  base: ServerBase<M>,
  { guard, findRoute }: { readonly guard: Guard; findRoute(name: string): Route | undefined },
): Site<M> {
  return {
    ...base,
    notices: createNotices(base.now),
    fleet: createFleet(base),
    bounds: null,
    canSee: () => true,
    findMachine(mac) {
      const machine = base.machines.peek(mac)
      if (machine === null) throw refuse(404, `no machine record for ${mac}`)
      return machine
    },
    caller: callerOf,
    peer: peerOf,
    isStillValid: guard.isStillValid,
    checkScope: (event, scope) => guard.checkScope(callerOf(event), scope),
    mayOpen(event, path, method = 'GET') {
      const route = findRoute(`${method} ${path}`)
      const access = typeof route?.access === 'object' ? route.access.page : 'admin'
      return guard.permits(callerOf(event), access, reachOf(route ?? { path }))
    },
    by: (event) => renderBy(callerOf(event), peerOf(event).ip),
    admitMachine: createAdmission(base),
    contact: createContactReader(base.now),
  }
}

/** Machines outside of the bounds are found, listed and counted nowhere. */
function scopeSite<M extends MachineBase>(site: Site<M>, bounds: Bounds): Site<M> {
  const { line, people, power } = site
  const labelsOf = (machine: M) => line.labelsOf?.(machine) ?? []
  const edits = createEditBounds<M>(bounds, {
    labelsOf,
    listScopeLabels: () => [
      ...(people?.store.list().flatMap(({ labels }) => labels ?? []) ?? []),
      ...(people?.configured()?.scopeLabels ?? []),
    ],
    listSecretLabels: () => power?.listSecretLabels?.() ?? [],
  })
  const fleet = site.fleet.within(edits)
  if (bounds.reach === null) return { ...site, bounds, fleet }
  const machines = createSeenMachines(site.machines, edits.canSee)
  const canSee = (mac: string): boolean => {
    const parsed = parseMac(mac)
    return parsed.ok && machines.peek(parsed.value) !== null
  }
  const listSeen = () => machines.peekAll().map(({ mac }) => mac)
  return {
    ...site,
    bounds,
    fleet,
    machines,
    runs: createSeenRuns(site.runs, { canSee, list: listSeen }),
    journal: createSeenJournal(site.journal, listSeen),
    power: site.power?.within?.(canSee),
    canSee,
    findMachine(mac) {
      const machine = machines.peek(mac)
      if (machine === null) throw refuse(404, `no machine record for ${mac}`)
      return machine
    },
  }
}

async function renderFailure<M extends MachineBase>(
  site: Site<M>,
  views: Pick<SiteViews, 'renderError'>,
  view: ErrorView,
  event: H3Event,
): Promise<string> {
  const mayOpen = (path: string) => site.mayOpen(event, path)
  const counts = view.loggedIn && mayOpen('/ui/events')
  const bounds = boundsOf(callerOf(event))
  const { journal } = bounds === null ? site : scopeSite(site, bounds)
  // The journal itself can be what failed.
  const alarms = counts ? await journal.countAlarms().catch(() => 0) : 0
  return views.renderError(view, { event, mayOpen, alarms })
}

// People who log in with a name, as the login page and the change of a password see them.

/** Whether the administrator's password alone opens a session, and those that it opened count. */
function allowsNameless({
  store,
  nameless,
  provider: findProvider,
}: Pick<PeopleServices, 'store' | 'nameless' | 'provider'>): boolean {
  const wanted = nameless()
  // Each request of such a session asks this.
  if (wanted === 'always') return true
  const set = findProvider()
  const open = set === null || set.failure() !== null ? null : set.issuer
  const administrators = store
    .list()
    .filter(({ role }) => role === 'administrate')
    .filter(({ id, provider }) =>
      provider === null
        ? store.passwordOf(id) !== null
        : // Whom another provider named before this one was set cannot come back.
          open !== null && isSameIssuer(provider.issuer, open),
    )
  return allowsNamelessLogin(wanted, { administrators: administrators.length })
}

function createNamedLogins(
  people: PeopleServices,
  accounts: Pick<Accounts, 'setPassword'>,
): NamedLogins & PeoplePasswords {
  const { store, checkHash } = people
  return {
    isUsed: () => store.list().some(({ id }) => store.passwordOf(id) !== null),
    allowsNameless: () => allowsNameless(people),
    find: store.findByName,
    findById: store.find,
    checkPassword: (person, given) =>
      checkHash(given, person === null ? null : store.passwordOf(person.id)),
    async storeLogin({ id }) {
      await store.storeLogin(id, {})
    },
    async setPassword({ id, name }, password, ip) {
      const set = await accounts.setPassword(id, password, { actor: `person:${name}`, ip })
      if (!set.ok) throw new Fault('conflict', `${name} was removed or changed in the meantime`)
    },
  }
}

/** The machines API: list, get, replace, delete, and what machines have posted. */
function machineRoutes(site: Site): readonly Route[] {
  const { line, machines, views, findMachine } = site
  const { show, replace, remove } = createRecordHandlers(site)

  async function showHardware(event: H3Event): Promise<Answer> {
    const mac = readMac(event)
    findMachine(mac)
    const hardware = await machines.findHardware(mac)
    if (hardware === null) throw refuse(404, `no lshw hardware inventory for ${mac}`)
    return attach(hardware.json, `${renderHyphens(mac)}-lshw.json`)
  }

  function showDisks(event: H3Event): Answer {
    const mac = readMac(event)
    const { disks } = line.describe(findMachine(mac))
    if (disks === null) throw refuse(404, `no disk inventory for ${mac}`)
    return attach(JSON.stringify(disks), `${renderHyphens(mac)}-disks.json`)
  }

  return [
    {
      method: 'GET',
      path: '/machines',
      access: 'read',
      reach: 'list',
      doc: {
        summary: 'All machines, by MAC',
        query: { q: 'Only those that the search of the machines page finds' },
        answers: { 200: { type: 'array', items: { $ref: '#/components/schemas/Machine' } } },
      },
      async handle(event) {
        const all = await machines.list()
        const { searchParams } = event.url
        const found = searchParams.has('q') ? views.match(all, searchParams) : all
        return json(found.map(line.toWire))
      },
    },
    {
      method: 'GET',
      path: '/machines/:mac',
      access: 'read',
      doc: { summary: 'One machine', answers: { 200: 'Machine' } },
      handle: (event) => show(findMachine(readMac(event))),
    },
    {
      method: 'PUT',
      path: '/machines/:mac',
      access: 'machines',
      takes: 'json',
      doc: {
        summary: 'Creates or replaces a machine; omitted fields get their defaults',
        body: 'MachineUpsert',
        answers: { 200: 'Machine' },
        refuses: [412],
        isNeverMissing: true,
      },
      handle: replace,
    },
    {
      method: 'DELETE',
      path: '/machines/:mac',
      access: 'machines',
      doc: { summary: 'Deletes a machine', answers: { 204: null }, refuses: [412] },
      handle: remove,
    },
    {
      method: 'GET',
      path: '/machines/:mac/lshw.json',
      access: 'read',
      doc: { summary: 'The hardware tree as posted', answers: { 200: {} } },
      handle: showHardware,
    },
    {
      method: 'GET',
      path: '/machines/:mac/disks.json',
      access: 'read',
      doc: { summary: 'The disks of the last inventory', answers: { 200: { type: 'array' } } },
      handle: showDisks,
    },
  ]
}

function createRecordHandlers({ line, findMachine, fleet, by }: Site) {
  /** Changes with what an operator can change, not with each contact. */
  const tagOf = (machine: MachineBase): string => {
    const fields = { ...line.toWire(machine), last_seen_at: null, last_seen_ip: null }
    const digest = createHash('sha256').update(JSON.stringify(fields)).digest('base64url')
    return `"${digest.slice(0, 22)}"`
  }
  const show = (machine: MachineBase) => json(line.toWire(machine), 200, { etag: tagOf(machine) })

  const expects = (event: H3Event) => (machine: MachineBase | null) =>
    meetsConditions(event.req.headers, machine === null ? null : tagOf(machine))

  return {
    show,
    async replace(event: H3Event, body: unknown): Promise<Answer> {
      const mac = readMac(event)
      const made = await fleet.upsert(mac, body, by(event), expects(event))
      if (made.ok) return show(made.value)
      throw asError(mac, made.refusal)
    },
    async remove(event: H3Event): Promise<Answer> {
      const mac = readMac(event)
      if (!expects(event)(findMachine(mac))) throw stale(mac)
      if (!(await fleet.remove(mac, by(event)))) throw refuse(404, `no machine record for ${mac}`)
      return nothing()
    },
  }
}

function asError(mac: Mac, refusal: UpsertRefusal) {
  switch (refusal.why) {
    case 'fields':
      return refuseFields(refusal.fields)
    case 'stale':
      return stale(mac)
    case 'missing':
      return refuse(404, `no machine record for ${mac}`)
    case 'forbidden':
      return refuse(403, refusal.reason)
  }
}

const stale = (mac: Mac) =>
  refuse(412, `the record of ${mac} was changed in the meantime, or exists already`)

/** Browsers save this and do not show it, because every text in it is the machine's own. */
const attach = (body: string, name: string) =>
  answer(
    200,
    {
      'content-type': 'application/json',
      'content-disposition': `attachment; filename="${name}"`,
    },
    body,
  )
