/** The limits on everything that a caller may request, in one place. */
import type { Server } from 'node:http'

const KIB = 1024
const MIB = 1024 * KIB

export const LIMITS = {
  /** Where a route takes nothing. */
  noBody: 64 * KIB,
  form: 64 * KIB,
  /** A table that is brought back from a spreadsheet. */
  table: 10 * MIB,
  json: MIB,
  inventory: 64 * MIB,
  /** The log of a run may have this size; its tail is kept. */
  log: 4 * MIB,
  jsonDepth: 100,
  /** Seconds for a body to arrive. */
  bodySeconds: 30,
  uploadSeconds: 120,
  /** Seconds in which an upload may stand still. */
  idleSeconds: 60,
  /** Bodies up to this size never wait for larger ones. */
  smallBody: 256 * KIB,
  /** Bytes of bodies held at once: the small ones, and the larger ones. */
  smallBodies: 64 * MIB,
  largeBodies: 64 * MIB,
  /** So many larger ones are read at once; the others wait so long: our live system gives a request 15 s. */
  largeAtOnce: 16,
  turnSeconds: 10,
  /** So many wait. */
  largeWaiting: 1024,
  listeners: 1000,
  /** Pages that share a stream, and characters of the query of each. */
  views: 16,
  viewCharacters: 4000,
  queryText: 200,
  queryFields: 16,
  bulkMachines: 20_000,
  /** Seconds that `wait` may last. */
  waitSeconds: 3600,
} as const

/**
 * Proxies use an idle connection again for up to a minute: a server that closes it first loses the request
 * that is on its way, and the proxy answers 502.
 */
const KEEP_ALIVE_SECONDS = 75

/** The fields of Node's HTTP server, or of its HTTPS server. */
export type TunableServer = Pick<
  Server,
  'headersTimeout' | 'requestTimeout' | 'keepAliveTimeout' | 'maxHeadersCount' | 'maxConnections'
>

/**
 * Limits slow and idle connections. A whole request has no limit of time, since uploads take what
 * they take: each body has a limit of its own instead (`body.ts`).
 */
export function tuneServer(server: TunableServer, keepAliveSeconds = KEEP_ALIVE_SECONDS): void {
  server.headersTimeout = 15_000
  server.requestTimeout = 0
  server.keepAliveTimeout = keepAliveSeconds * 1000
  server.maxHeadersCount = 100
  server.maxConnections = 8192
}
