/** The services that the cache's routes and pages share. */
import type { ImageCache } from '#cache/store/image-cache.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { LogSink } from '#kit/web/answers/caller.ts'

export interface CacheSite {
  readonly cache: ImageCache
  now(): Date
  readonly log: LogSink
  readonly folder: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
}
