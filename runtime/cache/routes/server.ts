/** The cache service: every URL that it answers, in one table. */
import type { H3 } from 'h3'
import { UPLOAD_KEY } from '#engine/capture/rules/upload-token.ts'
import type { Assets } from '#kit/web/answers/assets.ts'
import { deriveSecret, type Secret } from '#kit/web/access/secret.ts'
import { assetRoute } from '#kit/web/ui/assets.ts'
import { createPasswordCheck } from '#kit/web/access/password-check.ts'
import { createAttempts } from '#kit/web/access/attempts.ts'
import { createNarrowing } from '#kit/web/http/narrowing.ts'
import { createSeenCache } from '#cache/store/seen-cache.ts'
import { createApp } from '#kit/web/http/dispatch.ts'
import { createGuard } from '#kit/web/access/guard.ts'
import { healthRoutes } from '#kit/web/http/health.ts'
import type { LogSink } from '#kit/web/answers/caller.ts'
import type { PlainEvent, EventSubject } from '#kit/web/answers/plain-event.ts'
import { loginRoutes } from '#kit/web/access/login.ts'
import { createPeers } from '#kit/web/http/peer.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { createSessions, type SessionBook } from '#kit/web/access/session.ts'
import { themeRoute } from '#kit/web/ui/theme.ts'
import { createTokenCheck, type KnownToken } from '#kit/web/access/token-check.ts'
import { createCachePages, HOME } from '#cache/pages/layout.ts'
import { blobRoutes } from './blobs.ts'
import { capturePageRoutes } from '#cache/captures/capture-page-routes.ts'
import { captureRoutes, type CaptureSite } from '#cache/captures/capture-routes.ts'
import { catalogRoutes } from './catalog.ts'
import { imagerRoutes } from './imager.ts'
import { pageRoutes } from './pages.ts'
import { uploadRoutes } from './uploads.ts'
import type { CacheSite } from './site.ts'

interface CacheServerDependencies extends CacheSite {
  readonly secret: Secret
  readonly book: SessionBook
  readonly assets: Assets
  readonly version: string
  /** Monotonic milliseconds; absent: of the process. */
  elapsed?(): number
  checkPassword(given: string): Promise<boolean>
  isOwnToken(given: string): boolean
  /** Another secret with all rights, which people chose. */
  isChosenToken(given: string): boolean
  /** Empty: none is set. */
  serverUrl(): string
}

export function createCacheServer(parts: CacheServerDependencies): {
  readonly app: H3
  readonly routes: readonly Route[]
} {
  const { log, version } = parts
  // A cache on another host learns of no role that was taken away.
  const sessions = createSessions({ ...parts, renewsPeople: false })
  // Shared, as a bearer may be the password, too.
  const attempts = createAttempts(parts.elapsed)
  const recordAll = createEventRecorder(log)
  const tokens = createTokenCheck({
    tokens: {
      find: (text) => (parts.isOwnToken(text) ? TOKEN : null),
      findChosen: (text) => (parts.isChosenToken(text) ? TOKEN : null),
    },
    attempts,
    recordAll,
  })
  const guard = createGuard({ sessions, tokens })
  const site: CacheSite = parts
  const uploadKey = deriveSecret(parts.secret, UPLOAD_KEY)
  const receive = ({ cache }: CacheSite): CaptureSite => ({
    ...site,
    captures: cache.captures,
    uploadKey,
  })
  const pages = createCachePages({
    ...parts,
    countWaiting: () =>
      site.cache.captures.list().filter(({ status }) => status === 'waiting').length,
  })
  const check = createPasswordCheck({ attempts, checkPassword: parts.checkPassword })
  const login = { sessions, views: pages, check, recordAll }

  const makeSeenRoutes = (seen: CacheSite): readonly Route[] => [
    ...pageRoutes(seen, pages), // /ui/dashboard and its forms
    ...capturePageRoutes(receive(seen), { ...pages, home: HOME }), // /ui/capture
  ]
  const routes: readonly Route[] = [
    ...healthRoutes(version), //        /healthz /version
    ...blobRoutes(site), //             /b/:token /files/:name /blob
    ...catalogRoutes(site), //          /catalog /catalog/entries /pins
    ...imagerRoutes(site, parts.assets), // /imager.json
    ...uploadRoutes(site), //           /uploads
    ...captureRoutes(receive(site)), //      /captures
    ...loginRoutes(login), // / /ui /ui/login /ui/logout
    ...makeSeenRoutes(site),
    themeRoute, //                      /ui/theme
    assetRoute(parts.assets), //        /static/…
  ]
  const app = createApp({
    routes,
    guard,
    findPeer: createPeers(),
    narrow: createNarrowing(({ reach }) =>
      reach === null ? [] : makeSeenRoutes({ ...site, cache: createSeenCache(site.cache, reach) }),
    ),
    failures: { log, renderError: pages.renderError },
  })
  return { app, routes }
}

/** The cache has no journal: logins go into its log. */
const createEventRecorder =
  (log: LogSink) =>
  async (events: readonly PlainEvent[], { ip }: EventSubject) => {
    for (const { kind, summary } of events) {
      const line = `${summary} (${ip ?? 'no address'})`
      if (kind.endsWith('.failed')) log.warn(line)
      else log.info(line)
    }
  }

const TOKEN: KnownToken = { name: 'cache', scopes: ['admin'] }
