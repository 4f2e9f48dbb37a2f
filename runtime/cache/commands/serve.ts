/** `flasher-cache`: runs the cache until a signal ends it. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { openLog, runServer } from '#kit/program/listening.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { createAssets } from '#kit/web/answers/assets.ts'
import { createImageCache } from '#cache/store/image-cache.ts'
import { ensureLocalToken, isOneOf } from '#fleet/access/tokens.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import { createPasswords } from '#fleet/access/passwords.ts'
import { createSecret } from '#kit/web/access/secret.ts'
import { createCacheSessions } from '#fleet/access/owner-rows.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { readS3Access } from '#kit/net/s3/s3-client.ts'
import { isThere, prepareStateDir } from '#kit/config/state-dirs.ts'
import { createCacheServer } from '#cache/routes/server.ts'
import {
  decidePaths,
  listenSettings,
  readConfiguration,
  type CacheConfig,
} from './configuration.ts'

const now = () => new Date()

/** Rejects with a Fault for a bad configuration or folder, or a port that is taken. */
export async function serve(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  const { env } = environment
  const config = await readConfiguration(environment, given)
  const log = openLog(environment, config, () => 'info')
  const paths = decidePaths(config)
  await prepareStateDir(paths.stateDir)
  const version = await readVersion()
  await using cache = await createImageCache({
    folder: paths.folder,
    sources: createSources({ env, s3: () => readS3Access(config.current().s3, env) }),
    maxBytes: () => config.current().cache.max_bytes,
    upstreamSeconds: () => config.current().cache.upstream_check_interval,
    now,
    log,
    env,
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
    book: createCacheSessions({ ...paths, now }),
    assets: await createAssets(),
    checkPassword: passwords.check,
    isOwnToken: (text) => isOneOf(text, [token]),
    isChosenToken: (text) => isOneOf(text, configuredTokens(config)),
    folder: paths.folder,
    serverUrl: () => config.current().server.public_url,
    portBeside: async () => ((await isThere(paths.state)) ? config.current().server.port : null),
    env,
    version,
    now,
    log,
  })
  return await runServer(environment, {
    app,
    config,
    log,
    settings: listenSettings(config),
    endChannels: cache.endWaiting,
    announce({ urls }) {
      log.info(`flasher-cache ${version} serves ${paths.folder} on ${urls.join(' ')}`)
      announce(environment, urls, paths, generated)
    },
  })
}

/** Clients of the deployed service send the password as their token. */
function configuredTokens(config: CacheConfig): readonly string[] {
  const { admin, cache } = config.current()
  return [cache.token, admin.password]
}

function announce(
  { stdout }: ProcessEnvironment,
  urls: readonly string[],
  { folder }: ReturnType<typeof decidePaths>,
  generated: string | null,
): void {
  for (const url of urls) stdout.write(`Images:   ${url}ui\n`)
  stdout.write(`Folder:   ${folder}\n`)
  if (generated === null) return
  // Not into the log, which is kept and read by others.
  stdout.write(`Password: ${generated}\n`)
  stdout.write('          shown only this once; flasher-web password sets another\n')
}
