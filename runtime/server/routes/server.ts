/** The machine server: every URL in one table, with the rules of a release line. */
import type { H3Event } from 'h3'
import type { ErrorView } from '#kit/web/answers/caller.ts'
import type { SiteViews } from '#kit/web/ui/site-views.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { createPasswordCheck } from '#kit/web/access/password-check.ts'
import { createAttempts } from '#kit/web/access/attempts.ts'
import { bootFileRoutes } from './boot-files.ts'
import { bulkRoutes } from './bulk.ts'
import { createChannel } from '#server/updates/channel.ts'
import { contactRoutes, readContact } from './contact.ts'
import { createApp } from '#kit/web/http/dispatch.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { eventRoutes } from './events.ts'
import { createFleet, createEventRecorder } from './fleet.ts'
import { createAccounts } from '#fleet/access/accounts.ts'
import { createOwnedTokens } from '#fleet/access/owned-tokens.ts'
import { createProviderLogins } from '#server/openid/provider-logins.ts'
import { createGuard, renderBy, type Guard } from '#kit/web/access/guard.ts'
import { allowsNameless, createNamedLogins } from './named-logins.ts'
import { findApiReach } from './rules/api-reach.ts'
import { findPageReach, findPageScope, isPagePath } from './rules/page-gate.ts'
import { createNarrowing } from '#kit/web/http/narrowing.ts'
import { createSeenJournal } from '#fleet/state/seen-journal.ts'
import { createSeenMachines } from '#fleet/state/seen-machines.ts'
import { createSeenRuns } from '#fleet/run/seen-runs.ts'
import { createEditBounds } from './rules/edit-bounds.ts'
import type { Bounds } from '#kit/web/answers/rules/reach.ts'
import { healthRoutes } from '#kit/web/http/health.ts'
import type { ServerBase, ServerPlugin, ServerServices, Site } from './site.ts'
import { updateRoutes } from '#server/updates/update-routes.ts'
import { loginRoutes } from '#kit/web/access/login.ts'
import { machineRoutes } from './machines.ts'
import { metricsRoutes } from './metrics-route.ts'
import { createMetrics, timeRoute } from '#kit/web/http/metrics.ts'
import { createNotices } from '#kit/web/ui/form-notices.ts'
import { documentRoutes } from './openapi.ts'
import { createPasswordChange } from '#kit/web/access/password-change.ts'
import { createClientSeal, createPassedReader } from '#kit/web/http/client-seal.ts'
import { createPeers } from '#kit/web/http/peer.ts'
import { boundsOf, callerOf, peerOf } from '#kit/web/answers/caller.ts'
import type { RecordEvents } from '#kit/web/answers/plain-event.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { countRun, renderLost } from './run-events.ts'
import { runPostRoutes } from './run-posts.ts'
import { runRoutes } from './runs.ts'
import { createSessions, type Sessions } from '#kit/web/access/session.ts'
import { signalRoutes } from './signals.ts'
import { createTokenCheck } from '#kit/web/access/token-check.ts'
import { tokenRoutes } from './tokens.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import type { Contact, MachineRequest } from './transition.ts'

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
  const { accounts, ...logins } = createPeopleLogins(options, sessions, recordAll)
  const ofPeople = logins.named
  const changePassword = createPasswordChange({ ...options, sessions, check, recordAll, ofPeople })
  const metrics = createMetrics()
  const site = createSite({ ...options, metrics, recordAll, changePassword, accounts }, guard)
  const channel = createChannel({ ...site, views })
  const added = options.plugins.map((plugin) => plugin(site))
  runs.onLost(async (run) => {
    countRun(site.metrics, run)
    await recordAll([renderLost(run)], { subject_id: run.mac, actor: 'system', ip: null })
  })

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
    ...tokenRoutes(site), //              /tokens /tokens/:id
    ...metricsRoutes(site, channel.count), // /metrics
    ...loginRoutes({ ...site, ...logins, sessions, check, onEnd: channel.sweep }), // / /ui /ui/login /ui/logout
    ...logins.providerRoutes, //                 /ui/login/openid /callback /finish
    ...makeSeenRoutes(site),
  ]

  const app = createApp({
    routes,
    guard,
    findPeer: createPeers(options.settings, openPassedReader(options)),
    pageScope: findPageScope,
    routeReach: findRouteReach,
    narrow: createNarrowing((bounds) => makeSeenRoutes(scopeSite(site, bounds))),
    confirmRead: options.confirmRead,
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

const findRouteReach = (path: string) =>
  isPagePath(path) ? findPageReach(path) : findApiReach(path)

function createPeopleLogins<M extends MachineBase>(
  options: ServerOptions<M>,
  sessions: Sessions,
  recordAll: RecordEvents,
) {
  const { people, tokens, journal } = options
  if (people === undefined)
    return { accounts: null, named: undefined, providers: undefined, providerRoutes: [] }
  const { store, provider } = people
  const { record } = journal
  const accounts = createAccounts({ people: store, tokens, record })
  const named = createNamedLogins(people, accounts)
  const parts = { ...options, store, provider, named, sessions, recordAll }
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

function createSite<M extends MachineBase>(base: ServerBase<M>, guard: Guard): Site<M> {
  const clock = createClock(base.now)
  return {
    ...base,
    notices: createNotices(base.now),
    fleet: createFleet(base),
    bounds: null,
    sees: () => true,
    findMachine(mac) {
      const machine = base.machines.peek(mac)
      if (machine === null) throw refuse(404, `no machine record for ${mac}`)
      return machine
    },
    caller: callerOf,
    peer: peerOf,
    isStillValid: guard.isStillValid,
    checkScope: (event, scope) => guard.checkScope(callerOf(event), scope),
    mayOpen: (event, path, method = 'GET') =>
      guard.permits(callerOf(event), findPageScope(method, path), findPageReach(path)),
    by: (event) => renderBy(callerOf(event), peerOf(event).ip),
    admitMachine: createAdmission(base),
    contact: (event) => readContact(event, peerOf(event), clock()),
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
      ...(people?.provider()?.scopeLabels ?? []),
    ],
    listSecretLabels: () => power?.listSecretLabels?.() ?? [],
  })
  const fleet = site.fleet.within(edits)
  if (bounds.reach === null) return { ...site, bounds, fleet }
  const machines = createSeenMachines(site.machines, edits.sees)
  const sees = (mac: string): boolean => {
    const parsed = parseMac(mac)
    return parsed.ok && machines.peek(parsed.value) !== null
  }
  const listSeen = () => machines.peekAll().map(({ mac }) => mac)
  return {
    ...site,
    bounds,
    fleet,
    machines,
    runs: createSeenRuns(site.runs, { sees, list: listSeen }),
    journal: createSeenJournal(site.journal, listSeen),
    power: site.power?.within?.(sees),
    sees,
    findMachine(mac) {
      const machine = machines.peek(mac)
      if (machine === null) throw refuse(404, `no machine record for ${mac}`)
      return machine
    },
  }
}

/** Many contacts share a millisecond, and its text. */
function createClock(now: () => Date): () => string {
  let [at, text] = [Number.NaN, '']
  return () => {
    const present = now()
    if (present.getTime() !== at) [at, text] = [present.getTime(), present.toISOString()]
    return text
  }
}

/** Refusals are counted, never slowed: a rack behind one address must not lose its `done`. */
function createAdmission({ line, machines, metrics, recordAll }: ServerBase): Site['admitMachine'] {
  async function turnAway(
    mac: Mac,
    request: MachineRequest,
    { ip }: Contact,
    reason: string,
  ): Promise<never> {
    const summary = `${mac} was not admitted: ${reason}`
    const on = { subject_id: mac, actor: 'pxe-client', ip } as const
    await recordAll([{ kind: 'machine.token.refused', summary, details: { request, reason } }], on)
    metrics.count('flasher_boot_tokens_refused_total', { request })
    throw refuse(401, reason, { headers: { 'www-authenticate': 'Bearer' } })
  }

  return (mac, request, contact) => {
    const admitted = line.admit({ mac, machine: machines.peek(mac), request }, contact)
    if (!admitted.ok) return turnAway(mac, request, contact, admitted.refusal)
    if (admitted.value.length === 0) return undefined
    return recordAll(admitted.value, { subject_id: mac, actor: 'pxe-client', ip: contact.ip })
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
