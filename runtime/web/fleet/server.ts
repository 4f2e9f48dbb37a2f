/** The machine server: every URL that it answers, in one table, on parts that both lines bring. */
import type { H3 } from 'h3'
import type { MachineBase } from '../../core/machine/machine.ts'
import { createAdmission } from './admission.ts'
import { createAttempts } from '../http/attempts.ts'
import { bootFileRoutes } from './boot-files.ts'
import { bulkRoutes } from './bulk.ts'
import { createChannel } from '../live/channel.ts'
import { readContact } from './read-contact.ts'
import { createApp } from '../http/dispatch.ts'
import { eventRoutes } from './events.ts'
import { createFleet } from './fleet.ts'
import { createGuard, renderBy } from '../http/guard.ts'
import { healthRoutes } from '../http/health.ts'
import type { ServerDependencies, Site } from './site.ts'
import { liveRoutes } from '../live/live.ts'
import { loginRoutes } from './login.ts'
import { machineRoutes } from './machines.ts'
import { metricsRoutes } from './metrics-route.ts'
import { createMetrics, timeRoute } from '../http/metrics.ts'
import { createNotes } from './event-recorder.ts'
import { createNotices } from '../http/form-notices.ts'
import { documentRoutes } from './openapi.ts'
import { createPeers } from '../http/peer.ts'
import { pxeRoutes } from './pxe.ts'
import { callerOf, peerOf } from '../http/caller.ts'
import type { Route } from '../http/route.ts'
import { countRun } from './run-metrics.ts'
import { renderLost } from './run-events.ts'
import { runPostRoutes } from './run-posts.ts'
import { runRoutes } from './runs.ts'
import { createSessions } from '../http/session.ts'
import { createTokenCheck } from '../http/token-check.ts'
import { tokenRoutes } from './tokens.ts'

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

export function createServer<M extends MachineBase>(parts: ServerDependencies<M>): Server<M> {
  const { line } = parts
  const noteAll = createNotes(parts)
  const metrics = createMetrics()
  const sessions = createSessions(parts)
  const { now } = parts
  // No bearer is a password here: a program with a token that has ended keeps nobody from logging in.
  const attempts = createAttempts(now)
  const tokens = createTokenCheck({ tokens: parts.tokens, attempts: createAttempts(now), noteAll })
  const guard = createGuard({ sessions, tokens, now })
  const site: Site<M> = {
    ...parts,
    noteAll,
    metrics,
    notices: createNotices(now),
    fleet: createFleet({ ...parts, metrics }, noteAll),
    caller: callerOf,
    isLive: guard.isLive,
    checkScope: (event, scope) => guard.checkScope(callerOf(event), scope),
    peer: peerOf,
    by: (event) => renderBy(callerOf(event), peerOf(event).ip),
    admitMachine: createAdmission({ ...parts, metrics }, noteAll),
    contact: (event) => readContact(event, peerOf(event), parts.now()),
  }
  const channel = createChannel({ ...site, views: line })
  parts.runs.onLost(async (run) => {
    countRun(metrics, run)
    await noteAll([renderLost(run)], { subject_id: run.mac, actor: 'system', ip: null })
  })

  const routes: readonly Route[] = [
    // Open: machines hold no cookie, and monitoring should need none.
    ...healthRoutes(parts.version), //    /healthz /version
    ...pxeRoutes(site), //                /pxe-bootstrap.ipxe /pxe/:mac /plan /inventory /done /status
    ...runPostRoutes(site), //            /pxe/:mac/progress /pxe/:mac/log
    ...bootFileRoutes(site), //           /boot/:name (PUT: admin)
    ...documentRoutes(site, () => routes), // /openapi.json /docs/api
    // For operators and their programs.
    ...machineRoutes(site), //            /machines /machines/:mac /lshw.json /disks.json
    ...bulkRoutes(site), //               /machines/:mac/flash /machines/bulk
    ...runRoutes(site), //                /runs /runs.csv /runs.json /machines/:mac/runs /:id /:id/log
    ...eventRoutes(site), //              /events /events/:id/ack /events/ack
    ...liveRoutes(site, channel), //      /events/machines
    ...tokenRoutes(site), //              /tokens /tokens/:id
    ...metricsRoutes(site, channel.count), // /metrics
    ...loginRoutes({ ...parts, ...line, sessions, attempts, noteAll }), // / /ui /ui/login /ui/logout
    // What this release line alone serves: images, releases, backups, and the pages.
    ...parts.routes(site),
  ]

  const app = createApp({
    routes,
    guard,
    findPeer: createPeers(parts.settings),
    failures: { log: parts.log, renderError: line.renderError },
    timeRoute: (method, path) => timeRoute(metrics, method, path),
  })
  return { app, site, routes, listeners: channel.count, close: channel.close }
}
