/** `flasher-cache`: runs the cache until a signal ends it. */
import { renderError } from '../../core/foundation/fault.ts'
import { explainListening } from '../../core/net/listen-fault.ts'
import { renderProblem } from '../../core/config/settings-parser.ts'
import { createAssets } from '../../services/host/assets.ts'
import { createImageCache } from '../../services/cache/image-cache.ts'
import { ensureLocalToken, isOneOf } from '../../services/cache/local-token.ts'
import { readVersion } from '../../services/host/package-manifest.ts'
import { createPasswords } from '../../services/access/passwords.ts'
import { createSecret } from '../../services/access/secret.ts'
import { createSignedOut } from '../../services/access/signed-out.ts'
import { createSources } from '../../services/image/sources.ts'
import { prepareStateDir } from '../../services/config/state-dirs.ts'
import { createServerLog, type ServerLog } from '../../terminal/text/server-log.ts'
import { awaitEnding } from '../../services/host/watch.ts'
import { watchRequests } from '../../web/http/closing.ts'
import { createEntrance, type Entrance } from '../../web/http/entrance.ts'
import { tuneServer } from '../../web/http/limits.ts'
import { SUCCESS } from '../../core/command/server-exit.ts'
import { createCacheServer } from '../routes/server.ts'
import {
  type CacheConfig,
  decidePaths,
  type Listening,
  readConfiguration,
  type ProcessEnvironment,
} from './process-environment.ts'
import type { Arguments } from '../../core/command/arguments.ts'

export type CacheHandler = Entrance

/** What is under way may go on for so long once the cache is asked to end. */
const GRACE_MS = 8000

const now = () => new Date()

export async function serve(
  environment: ProcessEnvironment<CacheHandler>,
  given: Arguments,
): Promise<number> {
  const { env, stderr } = environment
  const config = await readConfiguration(environment, given)
  const log = createServerLog({ stderr, env, level: () => 'info', now })
  for (const problem of config.problems()) log.warn(renderProblem(problem))
  const paths = decidePaths(config)
  await prepareStateDir(paths.stateDir)
  const version = await readVersion()
  await using cache = await createImageCache({
    folder: paths.folder,
    sources: createSources({ env }),
    maxBytes: () => config.current().cache.max_bytes,
    now,
    log,
  })
  const passwords = createPasswords({
    path: paths.password,
    configured: () => config.current().admin,
  })
  const generated = await passwords.ensure()
  const token = await ensureLocalToken(paths.token)
  const { app } = createCacheServer({
    cache,
    secret: await createSecret({
      path: paths.secret,
      configured: config.current().server.session_secret,
    }),
    signedOut: createSignedOut({ path: paths.signedOut, now, log }),
    assets: await createAssets(),
    checkPassword: passwords.check,
    isOwnToken: (text) => isOneOf(text, [token]),
    isChosenToken: (text) => isOneOf(text, configuredTokens(config)),
    folder: paths.folder,
    serverUrl: () => config.current().server.public_url,
    env,
    version,
    now,
    log,
  })
  const { host, port } = config.current().cache
  const listening = await environment
    .listen(createEntrance(app, log), { host, port, tls: null })
    .catch((cause: unknown) => {
      throw explainListening(cause, {
        host,
        port,
        settingHint:
          'Set them with FLASHER_CACHE_HOST and FLASHER_CACHE_PORT, or [cache] host and port.',
      })
    })
  tuneServer(listening.server)
  const closing = watchRequests(listening.server)
  log.info(`flasher-cache ${version} serves ${paths.folder} on ${listening.urls.join(' ')}`)
  announce(environment, listening, paths, generated)
  reloadOnHangup(environment, config, log)
  await awaitEnding(environment.signal)
  log.info('stopping: no new connections are accepted')
  await closing.end(GRACE_MS)
  return SUCCESS
}

/** Clients of the deployed service send the password itself as their token. */
function configuredTokens(config: CacheConfig): readonly string[] {
  const { admin, cache } = config.current()
  return [cache.token, admin.password]
}

function announce(
  { stdout }: ProcessEnvironment<CacheHandler>,
  { urls }: Listening,
  { folder, password }: ReturnType<typeof decidePaths>,
  generated: string | null,
): void {
  for (const url of urls) stdout.write(`Images: ${url}ui\n`)
  stdout.write(`Folder: ${folder}\n`)
  if (generated === null) return
  // On standard output alone, and this once: logs are kept and read by others.
  stdout.write(`Password: ${generated}\n`)
  stdout.write(`  Generated now and not shown again; its hash is in ${password}.\n`)
}

function reloadOnHangup(
  { onHangup }: ProcessEnvironment<CacheHandler>,
  config: CacheConfig,
  log: ServerLog,
): void {
  onHangup(() => {
    config.reload().then(
      ({ changed, pending }) => {
        log.info(`configuration reloaded: ${changed.join(', ') || 'nothing'} changed`)
        if (pending.length > 0) log.warn(`these take effect after a restart: ${pending.join(', ')}`)
      },
      (thrown: unknown) => log.error(`the configuration was not reloaded: ${renderError(thrown)}`),
    )
  })
}
