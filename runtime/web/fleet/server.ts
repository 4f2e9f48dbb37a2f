/** The machine server: every URL that it answers, in one table, by the rules that a release line brings. */
import type { H3, H3Event } from 'h3'
import type { MachineBase } from '../../core/machine/machine.ts'
import { createAdmission } from './admission.ts'
import { createAttempts } from '../http/attempts.ts'
import { createBodyReader } from '../http/body.ts'
import { bootFileRoutes } from './boot-files.ts'
import { bulkRoutes } from './bulk.ts'
import { createChannel } from '../live/channel.ts'
import { readContact } from './contacts.ts'
import { createApp } from '../http/dispatch.ts'
import { eventRoutes } from './events.ts'
import { createFleet } from './fleet.ts'
import { createGuard, renderBy, type Guard } from '../http/guard.ts'
import { healthRoutes } from '../http/health.ts'
import type { ServerServices } from './server-services.ts'
import type { ServerPlugin, Site } from './site.ts'
import type { Caller } from '../http/caller.ts'
import { liveRoutes } from '../live/live.ts'
import { loginRoutes } from './login.ts'
import { machineRoutes } from './machines.ts'
import { metricsRoutes } from './metrics-route.ts'
import { createMetrics } from '../http/metrics.ts'
import { createNotes } from './event-recorder.ts'
import { createNotices } from '../http/form-notices.ts'
import { documentRoutes } from './openapi.ts'
import { createPeers, type Peer } from '../http/peer.ts'
import { pxeRoutes } from './pxe.ts'
import type { Route } from '../http/route.ts'
import { countRun, renderLost } from './run-events.ts'
import { runPostRoutes } from './run-posts.ts'
import { runRoutes } from './runs.ts'
import { createSessions } from '../http/session.ts'
import { signalRoutes } from './signals.ts'
import { createTokenCheck } from '../http/token-check.ts'
import { tokenRoutes } from './tokens.ts'

/** What a program hands to `createServer`. */
export interface ServerOptions<M extends MachineBase> extends ServerServices<M> {
  /** What this line alone serves: its pages and further routes. */
  readonly plugins: readonly ServerPlugin<M>[]
}

interface Server<M extends MachineBase> {
  /** `createEntrance(app, log)` for a listener, `app.request()` for tests. */
  readonly app: H3
  readonly site: Site<M>
  readonly routes: readonly Route[]
  /** Open live channels. */
  listeners(): number
  /** Ends the live channels, so that connections can be closed. */
  close(): void
}

export function createServer<M extends MachineBase>(options: ServerOptions<M>): Server<M> {
  const { views, runs, log, now } = options
  const requests = createRequests()
  const sessions = createSessions(options)
  // No bearer is a password here: a program with a token that has ended keeps nobody from logging in.
  const [attempts, guesses] = [createAttempts(now), createAttempts(now)]
  const noteAll = createNotes(options)
  const tokens = createTokenCheck({ tokens: options.tokens, attempts: guesses, noteAll })
  const guard = createGuard({ sessions, tokens, now })
  const peer = requests.rememberPeer(createPeers(options.settings))
  const site = createSite(options, { guard, noteAll, peer, caller: requests.caller })
  const channel = createChannel({ ...site, views })
  const added = options.plugins.map((plugin) => plugin(site))
  runs.onLost(async (run) => {
    countRun(site.metrics, run)
    await noteAll([renderLost(run)], { subject_id: run.mac, actor: 'system', ip: null })
  })

  const schemas = Object.assign({}, ...added.map((part) => part.schemas))
  const routes: readonly Route[] = [
    // Open: machines hold no cookie, and monitoring should need none.
    ...healthRoutes(options.version), //  /healthz /version
    ...pxeRoutes(site), //                /pxe-bootstrap.ipxe /pxe/:mac /plan
    ...signalRoutes(site), //             /pxe/:mac/inventory /done /status
    ...runPostRoutes(site), //            /pxe/:mac/progress /pxe/:mac/log
    ...bootFileRoutes(site), //           /boot/:name (PUT: admin)
    ...documentRoutes(site, schemas, () => routes), // /openapi.json /docs/api
    // For operators and their programs.
    ...machineRoutes(site), //            /machines /machines/:mac /lshw.json /disks.json
    ...bulkRoutes(site), //               /machines/:mac/flash /machines/bulk
    ...runRoutes(site), //                /runs /runs.csv /runs.json /machines/:mac/runs /:id /:id/log
    ...eventRoutes(site), //              /events /events/:id/ack /events/ack
    ...liveRoutes(site, channel), //      /events/machines
    ...tokenRoutes(site), //              /tokens /tokens/:id
    ...metricsRoutes(site, channel.count), // /metrics
    ...loginRoutes({ ...site, attempts }, sessions), // / /ui /ui/login /ui/logout
    // What this release line alone serves: images, releases, backups, and the pages.
    ...added.flatMap((part) => part.routes ?? []),
  ]

  const app = createApp({
    routes,
    guard,
    bodies: createBodyReader(),
    peer,
    failures: {
      log,
      isKnown: (event) => site.caller(event).kind !== 'anonymous',
      renderError: (view, event) =>
        views.renderError({ ...view, loggedIn: site.caller(event).kind === 'session' }),
    },
    admit: requests.rememberCaller,
    answered(event, status, route, seconds) {
      const labels = { method: event.req.method, route, status: `${Math.floor(status / 100)}xx` }
      site.metrics.observe('flasher_http_request_seconds', seconds, labels)
    },
  })
  return { app, site, routes, listeners: channel.count, close: channel.close }
}

/** What was found out of each request, for as long as it lasts. */
function createRequests() {
  const [peers, callers] = [new WeakMap<H3Event, Peer>(), new WeakMap<H3Event, Caller>()]
  return {
    caller: (event: H3Event): Caller => callers.get(event) ?? ANONYMOUS,
    rememberCaller: (event: H3Event, caller: Caller) => void callers.set(event, caller),
    rememberPeer: (find: (event: H3Event) => Peer) => (event: H3Event) => {
      const known = peers.get(event)
      if (known !== undefined) return known
      const peer = find(event)
      peers.set(event, peer)
      return peer
    },
  }
}

const ANONYMOUS: Caller = { kind: 'anonymous' }

function createSite<M extends MachineBase>(
  options: ServerOptions<M>,
  { guard, ...own }: Pick<Site<M>, 'noteAll' | 'peer' | 'caller'> & { readonly guard: Guard },
): Site<M> {
  const { now } = options
  const { peer, caller } = own
  const base = { ...options, ...own, metrics: createMetrics() }
  return {
    ...base,
    notices: createNotices({ caller, now }),
    fleet: createFleet(base),
    isLive: guard.isLive,
    checkScope: (event, scope) => guard.checkScope(caller(event), scope),
    by: (event) => renderBy(caller(event), peer(event).ip),
    admitMachine: createAdmission(base),
    contact: (event) => readContact(event, peer(event), now()),
  }
}
