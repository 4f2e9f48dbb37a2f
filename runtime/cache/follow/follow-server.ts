/** The URLs of a cache that follows another one: images by source and by name, the list; nothing is changed here. */
import type { H3, H3Event } from 'h3'
import { Fault } from '../../kit/foundation/fault.ts'
import { createGuard } from '../../kit/web/access/guard.ts'
import type { Answer } from '../../kit/web/answers/answers.ts'
import { taggedJson } from '../../kit/web/answers/answers.ts'
import type { Assets } from '../../kit/web/answers/assets.ts'
import type { LogSink } from '../../kit/web/answers/caller.ts'
import { refuse } from '../../kit/web/answers/faults.ts'
import type { Method, Route } from '../../kit/web/answers/route.ts'
import { etagOf } from '../../kit/web/answers/rules/etag.ts'
import { createApp } from '../../kit/web/http/dispatch.ts'
import { healthRoutes } from '../../kit/web/http/health.ts'
import { createPeers } from '../../kit/web/http/peer.ts'
import { assetRoute } from '../../kit/web/ui/assets.ts'
import { createFollowErrors } from '../pages/layout.ts'
import { VERSION_PARAMETER } from '../../engine/catalog/rules/blob-address.ts'
import { readToken, sendBlob } from '../routes/blobs.ts'
import { readSegment } from '../routes/segment.ts'
import type { Follower } from './follower.ts'
import {
  askFile,
  askSource,
  HOPS_HEADER,
  parseHops,
  parseWanted,
  type AskedImage,
} from './rules/followed-address.ts'

interface FollowServerDependencies {
  readonly follower: Follower
  /** The base address of the followed cache. */
  readonly base: string
  readonly assets: Assets
  readonly version: string
  readonly log: LogSink
}

/** Nobody has any rights here. */
const NO_SESSIONS = { read: () => null, renew: () => '', holds: () => false }
const NO_TOKENS = { check: () => null, find: () => null }
const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Creates the app; it listens nowhere yet. */
export function createFollowServer(parts: FollowServerDependencies): { readonly app: H3 } {
  const { follower, base, log } = parts

  async function send(event: H3Event, asked: AskedImage | null): Promise<Answer> {
    if (asked === null) throw refuse(400, 'this names no image')
    return sendBlob(event, await follower.open(asked, hopsOf(event, base)), asked.name)
  }

  const sendSource = (event: H3Event, source: string | null) =>
    send(event, source === null ? null : askSource(base, source, wantedOf(event)))

  async function list(event: H3Event) {
    const all = event.url.searchParams.has('all')
    const body = await follower.list(all, hopsOf(event, base))
    return taggedJson(event, { body, etag: etagOf(body) })
  }

  const open = { method: 'GET', access: 'open' } as const
  const byToken = (event: H3Event) => sendSource(event, readToken(event))
  const routes: readonly Route[] = [
    ...healthRoutes(parts.version),
    { ...open, path: '/b/:token', handle: byToken },
    { ...open, path: '/b/:token/**', handle: byToken },
    {
      ...open,
      path: '/blob',
      handle: (event) => sendSource(event, event.url.searchParams.get('url')),
    },
    {
      ...open,
      path: '/files/:name',
      handle: (event) => send(event, askFile(base, readSegment(event, 1) ?? '', wantedOf(event))),
    },
    { ...open, path: '/catalog', handle: list },
    assetRoute(parts.assets),
    ...METHODS.map((method): Route => ({
      ...open,
      method,
      path: '/**',
      handle() {
        throw refuse(
          method === 'GET' ? 404 : 409,
          `this cache follows ${base}: images are listed and changed there`,
        )
      },
    })),
  ]
  const app = createApp({
    routes,
    guard: createGuard({ sessions: NO_SESSIONS, tokens: NO_TOKENS }),
    findPeer: createPeers(),
    failures: { log, renderError: createFollowErrors(parts) },
  })
  return { app }
}

function wantedOf(event: H3Event): string | null {
  const wanted = parseWanted(event.url.searchParams.get(VERSION_PARAMETER))
  if (wanted === undefined) throw refuse(404, 'no version of an image has this SHA-256')
  return wanted
}

function hopsOf(event: H3Event, base: string): number {
  const hops = parseHops(event.req.headers.get(HOPS_HEADER))
  if (hops !== null) return hops
  throw new Fault('upstream-failed', `caches follow each other in a circle (this one: ${base})`, {
    hint: 'Look at [cache] follow of each of them: one must keep the images.',
  })
}
