/** Runs a server: it listens as its settings say, reads its configuration again when asked to, and ends in order. */
import { Fault, renderError } from '#kit/foundation/fault.ts'
import type { SettingsTable } from '#kit/config/rules/setting.ts'
import { SUCCESS } from '#kit/terminal/command/rules/command.ts'
import { explainListening } from '#kit/net/rules/network-failure.ts'
import { renderProblem } from '#kit/config/rules/settings-parser.ts'
import type { Config, Reloaded } from '#kit/config/config.ts'
import { awaitEnding } from '#kit/host/watch.ts'
import { createServerLog, type LogLevel, type ServerLog } from '#kit/terminal/text/log.ts'
import {
  createEntrance,
  type Diversion,
  type Entrance,
  watchRequests,
} from '#kit/web/http/entrance.ts'
import { tuneServer } from '#kit/web/answers/limits.ts'
import type { Listening, ListenAddress, ProcessEnvironment } from './process-environment.ts'

/** Opens the log, which begins with what is wrong with the configuration. */
export function openLog(
  { stderr, env }: Pick<ProcessEnvironment, 'stderr' | 'env'>,
  config: Pick<Config<SettingsTable>, 'problems'>,
  level: () => LogLevel,
): ServerLog {
  const log = createServerLog({ stderr, env, level, now: () => new Date() })
  for (const problem of config.problems()) log.warn(renderProblem(problem))
  return log
}

interface ServerRun {
  readonly app: Parameters<typeof createEntrance>[0]
  readonly config: Pick<Config<SettingsTable>, 'reload' | 'listen'>
  readonly log: ServerLog
  readonly settings: ListenSettings
  /** Says to whoever started it where it is. */
  announce(listening: Listening): void
  /** Ends answers that would go on forever. */
  endChannels?(): void
  /** Where it listens already; absent: it begins to. */
  readonly door?: OpenDoor | undefined
  /** Takes requests that are not for `app`; absent: all are. */
  readonly divert?: Diversion | undefined
}

/** A server that listens, and whose requests somebody else may take from a moment on. */
export type OpenDoor = Awaited<ReturnType<typeof openDoor>>

/** Listens, and hands each request to the newest listener. Rejects with a Fault where it cannot. */
export async function openDoor(
  environment: Pick<ProcessEnvironment, 'listen'>,
  first: Entrance,
  settings: ListenSettings,
) {
  let newest = first
  const handler: Entrance = (request, response) => newest(request, response)
  const listening = await listen(environment, handler, settings)
  const closing = watchRequests(listening.server)
  return {
    listening,
    /** Resolves once nothing is open any more: what is under way has 8 s to end. */
    close: () => closing.end(GRACE_MS),
    swap(next: Entrance): void {
      newest = next
    },
  }
}

interface ListenSettings {
  readonly host: string
  readonly port: number
  /** Paths of PEM files; both empty: plain HTTP. */
  readonly tls_cert: string
  readonly tls_key: string
  /** How long an idle connection stays open, seconds; absent: as usual. */
  readonly keep_alive_seconds?: number
  /** How another address is chosen, for the fault that says that this one is taken. */
  readonly settingHint: string
}

/** What is under way may go on for so long once a server is asked to end. */
const GRACE_MS = 8000

/** Resolves to the exit code once it is asked to end. A Fault where it cannot listen. */
export async function runServer(
  environment: Pick<ProcessEnvironment, 'listen' | 'onHangup' | 'signal' | 'stdout'>,
  { app, config, log, settings, announce, endChannels, door: opened, divert }: ServerRun,
): Promise<number> {
  const entrance = createEntrance(app, log, divert)
  opened?.swap(entrance)
  const door = opened ?? (await openDoor(environment, entrance, settings))
  const { listening } = door
  announce(listening)
  reloadOnHangup(environment, config, log, listening)
  await awaitEnding(environment.signal)
  environment.stdout.write('Stopping.\n')
  endChannels?.()
  await door.close()
  return SUCCESS
}

async function listen(
  environment: Pick<ProcessEnvironment, 'listen'>,
  handler: Entrance,
  settings: ListenSettings,
): Promise<Listening> {
  const address = addressOf(settings)
  try {
    const listening = await environment.listen(handler, address)
    tuneServer(listening.server, settings.keep_alive_seconds)
    return listening
  } catch (cause) {
    throw explainListening(cause, { ...address, settingHint: settings.settingHint })
  }
}

function addressOf({ host, port, tls_cert: cert, tls_key: key }: ListenSettings): ListenAddress {
  if ((cert === '') !== (key === '')) {
    throw new Fault('input-invalid', 'server.tls_cert and server.tls_key belong together', {
      hint: 'Set both for HTTPS, or none.',
    })
  }
  return { host, port, tls: cert === '' ? null : { cert, key } }
}

function reloadOnHangup(
  { onHangup }: Pick<ProcessEnvironment, 'onHangup'>,
  config: ServerRun['config'],
  log: ServerLog,
  listening: Listening,
): void {
  onHangup(() => {
    listening.renewCertificate().catch((thrown: unknown) => {
      log.error(`the certificate was not reloaded: ${renderError(thrown)}`)
    })
    config.reload().then(
      ({ problems, changed, pending }) => {
        for (const problem of problems) log.warn(renderProblem(problem))
        if (changed.length > 0) return
        log.info('configuration reloaded, nothing changed')
        logPending(pending, log)
      },
      (thrown: unknown) => log.error(`the configuration was not reloaded: ${renderError(thrown)}`),
    )
  })
  config.listen(({ changed, pending }) => {
    if (changed.length === 0) return
    log.info(`configuration: ${changed.join(', ')} changed`)
    logPending(pending, log)
  })
}

function logPending(pending: Reloaded['pending'], log: ServerLog): void {
  if (pending.length > 0) log.warn(`restart to apply: ${pending.join(', ')}`)
}
