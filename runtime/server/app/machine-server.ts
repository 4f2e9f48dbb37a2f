/** Opens the machine server of a line: what both lines give it, beside what a line brings. */
import type { ServerConfig } from '../../kit/config/config.ts'
import { pathOfUrl } from '../../kit/net/rules/host-header.ts'
import { PAGES } from '../texts/texts.ts'
import { fill } from '../../kit/texts/text.ts'
import type { MachineBase } from '../../engine/inventory/rules/machine.ts'
import { createSecret, type Secret } from '../../kit/web/access/secret.ts'
import type { ServerSessions } from '../../fleet/access/owner-rows.ts'
import { createSignedOut } from '../../kit/web/access/signed-out.ts'
import { watchSpace } from '../../fleet/state/disk-space.ts'
import type { ServerLog } from '../../kit/terminal/text/server-log.ts'
import { createServer, type ServerOptions } from '../routes/server.ts'
import { toWebSettings } from './web-settings.ts'
import type { FleetState } from './fleet-state.ts'

interface ServerDependencies<M extends MachineBase> {
  readonly config: ServerConfig
  readonly state: FleetState<M>
  readonly log: ServerLog
  readonly release: string
  readonly folders: Readonly<Record<'stateDir' | 'secret' | 'signedOut', string>>
  now(): Date
}

/** What is made here, or is of the state. */
type OwnService =
  | keyof FleetState<never>
  | 'secret'
  | 'book'
  | 'settings'
  | 'now'
  | 'log'
  | 'version'

/**
 * Makes the server of a line, which does not listen yet. `open` resolves to what the line brings; the
 * services that it adds to `opened` end with the server, the last one first.
 *
 * Rejects with a Fault where the session key cannot be read, and `no-leader` where it cannot be stored
 * for the other servers within 12 s.
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
  if (path !== '') log.warn(fill(PAGES.settings.row.publicPath, { path }))
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
  // Who logs in from here on is logged in on the next leader, too: it has this key.
  await state.presence?.share()
  const server = createServer<M>({
    ...state,
    ...(await open(secret, opened)),
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
    /** The live systems that machines boot, by architecture. */
    active: server.site.bootFiles.active,
    /** Returns the number of open live channels. */
    listeners: server.listeners,
    /** Ends the channels, so that their connections can be closed. */
    endChannels: server.close,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** A state that may be an older copy lets nobody in again whose session has ended since. */
async function openBook(
  { peopleStore, database, leader }: Pick<FleetState<never>, 'peopleStore' | 'database' | 'leader'>,
  path: string,
  now: () => Date,
): Promise<ServerSessions> {
  await peopleStore.openSessions(leader === null && database.doubt !== null)
  const { sessions } = peopleStore
  // A cache with the same state directory writes there which sessions were logged out of it.
  const list = createSignedOut({ path, now })
  return {
    ...sessions,
    admit: (session) => (list.has(session) ? undefined : sessions.admit(session)),
  }
}
