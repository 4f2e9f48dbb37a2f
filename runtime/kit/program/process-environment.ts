/** The context of one command of a server program: its arguments, and the parts of the process that it may use. */
import type { Environment } from '#kit/host/shell.ts'
import type { LineInput } from '#kit/terminal/prompt/keyboard.ts'
import type { Output } from '#kit/terminal/text/terminal-style.ts'
import type { ClosableServer, Entrance } from '#kit/web/http/entrance.ts'
import type { TunableServer } from '#kit/web/answers/limits.ts'

export interface Listening {
  readonly server: HttpServer
  readonly port: number
  /** Where it can be reached, the most useful first: `http://192.0.2.7:8080/`. */
  readonly urls: readonly string[]
  renewCertificate(): Promise<void>
}

/** What of node's HTTP server is set and ended here. */
type HttpServer = TunableServer & ClosableServer

export interface ListenAddress {
  readonly host: string
  readonly port: number
  /** Paths of PEM files; null: plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | null
}

/** What a process hands to its program, and nothing else of the environment outside. */
export interface ProcessEnvironment {
  /** The arguments without the program's own name. */
  readonly argv: readonly string[]
  readonly env: Environment
  readonly stdin: LineInput & NodeJS.ReadableStream
  readonly stdout: Output
  readonly stderr: Output & NodeJS.WritableStream
  readonly isRoot: boolean
  /** `/etc/flasher`. */
  readonly systemDir: string
  /** This signal is aborted when the process is asked to end. */
  readonly signal: AbortSignal
  /** SIGHUP: read the configuration again. */
  onHangup(listener: () => void): void
  listen(handler: Entrance, address: ListenAddress): Promise<Listening>
  /**
   * Starts a cache service beside the server and gives its address, null when it did not start.
   * Absent: there is none to start. It ends with `signal`.
   */
  startCache?(options: CacheOptions): Promise<string | null>
  /**
   * Starts the DHCP proxy as root beside the server, null when it did not start. Absent: a unit runs
   * it. It ends with us.
   */
  startProxy?(options: ProxyOptions): Promise<StartedProxy | null>
  /** Where `pnpm build:images` leaves live systems; absent: the program is not run from a checkout. */
  readonly builtDir?: string
  /** Where a person finds live systems to install; absent: in the package and beside it. */
  readonly liveFolders?: readonly string[]
}

interface ProxyOptions {
  readonly wishFolder: string
  /** Of the settings. Empty: one is chosen. */
  readonly networks: readonly string[]
}

export interface StartedProxy {
  /** Of its report. */
  readonly folder: string
  /** What counts before the settings; empty: nothing. */
  readonly networks: readonly string[]
}

interface CacheOptions {
  readonly host: string
  /** Or the next one that is free. */
  readonly port: number
  readonly stateDir: string
  /** What `--config` named. */
  readonly named: readonly string[]
}
