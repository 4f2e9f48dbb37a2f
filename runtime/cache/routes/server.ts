/** The cache service: every URL that it answers, in one table. */
import type { H3 } from 'h3'
import { UPLOAD_KEY } from '../../core/capture/upload-token.ts'
import type { Assets } from '../../services/host/assets.ts'
import type { SignedOut } from '../../services/access/signed-out.ts'
import { deriveSecret, type Secret } from '../../services/access/secret.ts'
import type { TokenRecord } from '../../services/access/tokens.ts'
import { assetRoute } from '../../web/ui/assets.ts'
import { createPasswordCheck } from '../../web/access/password-check.ts'
import { createAttempts } from '../../web/http/attempts.ts'
import { createApp } from '../../web/http/dispatch.ts'
import { createGuard } from '../../web/http/guard.ts'
import { healthRoutes } from '../../web/http/health.ts'
import type { Log } from '../../web/http/caller.ts'
import type { Note, NoteSubject } from '../../web/http/event-note.ts'
import { loginRoutes } from '../../web/fleet/login.ts'
import { createPeers } from '../../web/http/peer.ts'
import type { Route } from '../../web/http/route.ts'
import { createSessions } from '../../web/http/session.ts'
import { themeRoute } from '../../web/ui/theme.ts'
import { createTokenCheck } from '../../web/http/token-check.ts'
import { createCachePages } from '../pages/frame.ts'
import { blobRoutes } from './blobs.ts'
import { capturePageRoutes } from './capture-pages.ts'
import { captureRoutes } from './captures.ts'
import { catalogRoutes } from './catalog.ts'
import { pageRoutes } from './pages.ts'
import { uploadRoutes } from './uploads.ts'
import type { CacheSite } from './site.ts'

interface CacheServerDependencies extends Omit<CacheSite, 'uploadKey'> {
  readonly secret: Secret
  readonly signedOut: SignedOut
  readonly assets: Assets
  readonly version: string
  /** Milliseconds of a clock that nobody sets; the process's own unless said. */
  elapsed?(): number
  checkPassword(given: string): Promise<boolean>
  /** Whether a bearer token is the one that the cache made for itself. */
  isOwnToken(given: string): boolean
  /** Whether it is another secret with which things may be changed, one that people chose. */
  isChosenToken(given: string): boolean
  /** The address of the machine server that a setting names; empty: none. */
  serverUrl(): string
}

export function createCacheServer(parts: CacheServerDependencies): { readonly app: H3 } {
  const { log, version } = parts
  const sessions = createSessions(parts)
  // One for both: a bearer may be the password, too.
  const attempts = createAttempts(parts.elapsed)
  const noteAll = createNotes(log)
  const tokens = createTokenCheck({
    tokens: {
      find: (text) => (parts.isOwnToken(text) ? TOKEN : null),
      findChosen: (text) => (parts.isChosenToken(text) ? TOKEN : null),
    },
    attempts,
    noteAll,
  })
  const guard = createGuard({ sessions, tokens })
  const site: CacheSite = { ...parts, uploadKey: deriveSecret(parts.secret, UPLOAD_KEY) }
  const pages = createCachePages(parts)
  const check = createPasswordCheck({ attempts, checkPassword: parts.checkPassword })
  const login = { sessions, views: pages, check, noteAll }

  const routes: readonly Route[] = [
    ...healthRoutes(version), //        /healthz /version
    ...blobRoutes(site), //             /b/:token /files/:name /blob
    ...catalogRoutes(site), //          /catalog /catalog/entries /pins
    ...uploadRoutes(site), //           /uploads
    ...captureRoutes(site), //          /captures
    ...loginRoutes(login), // / /ui /ui/login /ui/logout
    ...pageRoutes(site, pages), // /ui/dashboard and its forms
    ...capturePageRoutes(site, pages), // /ui/capture
    themeRoute, //                      /ui/theme
    assetRoute(parts.assets), //        /static/…
  ]
  const app = createApp({
    routes,
    guard,
    // It stands behind no proxy and has no name of its own.
    findPeer: createPeers(),
    failures: { log, renderError: pages.renderError },
  })
  return { app }
}

/** The cache has no journal: who comes in, and who fails to, goes into its log. */
const createNotes =
  (log: Log) =>
  async (notes: readonly Note[], { ip }: NoteSubject) => {
    for (const { kind, summary } of notes) {
      const line = `${summary} (${ip ?? 'no address'})`
      if (kind.endsWith('.failed')) log.warn(line)
      else log.info(line)
    }
  }

/** What every token of the cache may. */
const TOKEN: TokenRecord = {
  id: 'cache',
  name: 'cache',
  scopes: ['admin'],
  created_at: '',
  last_used_at: null,
  expires_at: null,
}
