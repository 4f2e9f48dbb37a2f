/** `flasher-cache` with `[cache] follow`: runs a cache of bytes in front of another one until a signal ends it. */
import { createSources } from '../../engine/image/sources/sources.ts'
import type { openLog } from '../../kit/program/listening.ts'
import { runServer } from '../../kit/program/listening.ts'
import type { ProcessEnvironment } from '../../kit/program/process-environment.ts'
import { createAssets } from '../../kit/web/answers/assets.ts'
import { createFollowed } from '../follow/followed.ts'
import { createFollower } from '../follow/follower.ts'
import { createFollowServer } from '../follow/follow-server.ts'
import { type CacheConfig, type decidePaths, listenSettings } from './configuration.ts'

interface FollowSetup {
  readonly config: CacheConfig
  readonly log: ReturnType<typeof openLog>
  readonly paths: ReturnType<typeof decidePaths>
  readonly version: string
}

/** The longest silence of the followed cache before a download asks again, in milliseconds. */
const STALL_MS = 10_000

const now = () => new Date()

/** Resolves to the exit code. Rejects with a Fault where the folder cannot be used or the port is taken. */
export async function follow(
  environment: ProcessEnvironment,
  { config, log, paths, version }: FollowSetup,
): Promise<number> {
  const { env, stdout } = environment
  const base = config.current().cache.follow
  await using followed = createFollowed({ base, env })
  await using follower = await createFollower({
    folder: paths.folder,
    followed,
    sources: createSources({ env, stallMs: STALL_MS }),
    maxBytes: () => config.current().cache.max_bytes,
    now,
    log,
  })
  const { app } = createFollowServer({
    follower,
    base,
    assets: await createAssets(),
    version,
    log,
  })
  return await runServer(environment, {
    app,
    config,
    log,
    settings: listenSettings(config),
    announce({ urls }) {
      log.info(`flasher-cache ${version} follows ${base} on ${urls.join(' ')}`)
      for (const url of urls) stdout.write(`Images of ${base}: ${url}\n`)
      stdout.write(`Folder: ${paths.folder}\n`)
    },
  })
}
