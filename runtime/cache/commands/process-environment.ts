/** The context of one `flasher-cache` command: its arguments, and the parts of the process that it may use. */
import { readConfig, type Config } from '../../services/config/config.ts'
import { DATA_FOLDER } from '../../services/cache/image-cache.ts'
import type { Environment } from '../../services/host/shell.ts'
import type { Output } from '../../terminal/text/terminal-style.ts'
import type { ClosableServer } from '../../web/http/closing.ts'
import type { TunableServer } from '../../web/http/limits.ts'
import { parseSettings, SETTINGS } from '../rules/settings.ts'
import type { Arguments } from '../../core/command/arguments.ts'

/** A listening socket and what is behind it. */
export interface Listening {
  readonly server: HttpServer
  readonly port: number
  /** Where it can be reached, the most useful first: `http://192.0.2.7:8081/`. */
  readonly urls: readonly string[]
}

type HttpServer = TunableServer & ClosableServer

interface ListenAddress {
  readonly host: string
  readonly port: number
  readonly tls: null
}

/** What a process hands to its program, and nothing else of the environment outside. */
export interface ProcessEnvironment<Handler> {
  /** Without the program's own name. */
  readonly argv: readonly string[]
  readonly env: Environment
  readonly stdout: Output
  readonly stderr: Output
  readonly isRoot: boolean
  /** `/etc/flasher`. */
  readonly systemDir: string
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal
  /** SIGHUP: read the configuration again. */
  onHangup(listener: () => void): void
  listen(handler: Handler, address: ListenAddress): Promise<Listening>
}

export type CacheConfig = Config<typeof SETTINGS>

/** From the usual places, or those that `--config` names. */
export const readConfiguration = (
  environment: Pick<ProcessEnvironment<never>, 'env' | 'systemDir' | 'isRoot'>,
  given: Arguments,
): Promise<CacheConfig> => readConfig({ table: SETTINGS, parse: parseSettings }, environment, given)

/** Where everything lies; password and session key are those of a server with the same state. */
export function decidePaths(config: CacheConfig) {
  const { stateDir } = config
  const folder = config.current().cache.dir || `${stateDir}/cache`
  return {
    stateDir,
    folder,
    token: `${folder}/${DATA_FOLDER}/token`,
    password: `${stateDir}/admin-password`,
    secret: `${stateDir}/session-secret`,
    signedOut: `${stateDir}/signed-out.json`,
  } as const
}
