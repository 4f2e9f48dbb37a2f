/** Current line: where machines may read images besides the caches, by what is configured. */
import type { FollowedCatalog } from '#engine/catalog/catalogs.ts'
import { createOrigins, type Origins } from '#engine/catalog/origins.ts'
import type { Environment } from '#kit/host/shell.ts'
import { readS3Access } from '#kit/net/s3/s3-keys.ts'
import type { LineConfig } from './configuration.ts'

interface OpenedOrigins {
  readonly config: LineConfig
  readonly catalog: Pick<FollowedCatalog, 'snapshot'>
  /** For proxies, keys of buckets, and registries that speak plain http. */
  readonly env: Environment
  readonly log: { info(message: string): void; warn(message: string): void }
  readonly now: () => Date
}

/** Asks registries and buckets only where that is switched on. */
export function openOrigins({ config, catalog, env, log, now }: OpenedOrigins): Origins {
  const settings = () => config.current()
  return createOrigins({
    images: () => catalog.snapshot().entries,
    isEnabled: () => settings().sources.origins,
    s3: () => readS3Access(settings().s3, env),
    lifetime: () => settings().s3.lifetime,
    env,
    log,
    now,
  })
}
