/** Opens the machine server of a line: what both lines give it, beside what a line brings. */
import { PUBLIC_PATH } from '#server/pages/settings/settings-list.ts'
import type { ServerConfig } from '#kit/config/config.ts'
import { pathOfUrl } from '#kit/net/rules/host-header.ts'
import { fill } from '#kit/foundation/text.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { createSecret, type Secret } from '#kit/web/access/secret.ts'
import type { ServerSessions } from '#fleet/access/owner-rows.ts'
import { createSignedOut } from '#kit/web/access/signed-out.ts'
import { watchSpace } from '#fleet/state/disk-space.ts'
import type { ServerLog } from '#kit/terminal/text/log.ts'
import { createInventories } from '#server/routes/inventories.ts'
import { createServer, type ServerOptions } from '#server/routes/server.ts'
import type { FleetState } from './fleet-state.ts'
import type { ServerSettings } from '#kit/config/rules/shared-settings.ts'
import type { WebSettings } from '#kit/web/answers/caller.ts'

interface ServerDependencies<M extends MachineBase> {
  readonly config: ServerConfig
  readonly state: FleetState<M>
  readonly log: ServerLog
  readonly release: string
  readonly folders: Readonly<Record<'stateDir' | 'secret' | 'signedOut', string>>
  now(): Date
}

type OwnService =
  | keyof FleetState<never>
  | 'inventories'
  | 'secret'
  | 'book'
  | 'settings'
  | 'now'
  | 'log'
  | 'version'

/**
 * Does not listen yet. Services that `open` adds to `opened` end with the server, last one first.
 * Rejects with a Fault where the session key cannot be read, and `no-leader` where it cannot be
 * stored for the other servers within 12 s.
 */
export async function openMachineServer<M extends MachineBase>(
  { config, state, log, release, folders, now }: ServerDependencies<M>,
  open: (
    secret: Secret,
    opened: AsyncDisposableStack,
  ) => Promise<Omit<ServerOptions<M>, OwnService>>,
) {
  await using opened = new AsyncDisposableStack()
  const { journal } = state
  const path = pathOfUrl(config.current().server.public_url)
  if (path !== '') log.warn(fill(PUBLIC_PATH, { path }))
  const configured = config.current().server.session_secret
  const secret = await createSecret({ path: folders.secret, configured })
  opened.use(
    watchSpace({
      path: folders.stateDir,
      journal,
      warnBelow: () => config.current().retention.warn_free_bytes,
      onLow: log.warn,
    }),
  )
  // The next leader has this key, so sessions made from here on hold there, too.
  await state.presence?.share()
  const server = createServer<M>({
    ...state,
    ...(await open(secret, opened)),
    inventories: opened.use(createInventories()),
    secret,
    book: await openBook(state, folders.signedOut, now),
    settings: () => toWebSettings(config.current()),
    now,
    log,
    version: release,
  })
  opened.defer(server.close)
  const held = opened.move()
  return {
    app: server.app,
    routes: server.routes,
    active: server.site.bootFiles.active,
    listeners: server.listeners,
    endChannels: server.close,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** In a state that may be an older copy, sessions that have ended since stay ended. */
async function openBook(
  { peopleStore, database, leader }: Pick<FleetState<never>, 'peopleStore' | 'database' | 'leader'>,
  path: string,
  now: () => Date,
): Promise<ServerSessions> {
  await peopleStore.openSessions(leader === null && database.doubt !== null)
  const { sessions } = peopleStore
  // A cache with the same state directory writes sessions that it logged out there.
  const list = createSignedOut({ path, now })
  return {
    ...sessions,
    admit: (session) => (list.has(session) ? undefined : sessions.admit(session)),
  }
}

/** What the settings of a machine server say of callers. */
export const toWebSettings = ({ server, pxe, tuning, metrics }: ServerSettings): WebSettings => ({
  publicUrl: server.public_url || null,
  allowedHosts: server.allowed_hosts,
  trustedProxies: server.trusted_proxies,
  discoveriesPerMinute: pxe.discovery_per_minute,
  mostUnassigned: pxe.discovery_rows,
  uploadMostBytes: tuning.max_upload_bytes,
  openMetrics: metrics.open,
})
