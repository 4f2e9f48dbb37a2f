/** Reads the configuration of the cache service, and says where everything lies. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { readConfig, type Config } from '#kit/config/config.ts'
import { DATA_FOLDER } from '#cache/store/pins.ts'
import { parseSettings, SETTINGS } from '#cache/rules/settings.ts'

export type CacheConfig = Config<typeof SETTINGS>

export const readConfiguration = (
  environment: ProcessEnvironment,
  given: Arguments,
): Promise<CacheConfig> => readConfig({ table: SETTINGS, parse: parseSettings }, environment, given)

/** A server with the same state shares password and session key. */
export function decidePaths(config: CacheConfig) {
  const { stateDir } = config
  const folder = config.current().cache.dir || `${stateDir}/cache`
  return {
    stateDir,
    folder,
    token: `${folder}/${DATA_FOLDER}/token`,
    password: `${stateDir}/admin-password`,
    secret: `${stateDir}/session-secret`,
    state: `${stateDir}/state.db`,
    signedOut: `${stateDir}/signed-out.json`,
  } as const
}

export function listenSettings(config: CacheConfig) {
  const { host, port } = config.current().cache
  return {
    host,
    port,
    tls_cert: '',
    tls_key: '',
    settingHint:
      'Set them with FLASHER_CACHE_HOST and FLASHER_CACHE_PORT, or [cache] host and port.',
  } as const
}

/** Loopback where `host` stands for all networks. */
export const renderOrigin = (host: string, port: number): string =>
  `http://${reachable(host)}:${port}`

function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
