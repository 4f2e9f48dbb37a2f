/** `flasher-web`: runs the server until it is asked to end. */
import { Fault, renderError } from '../../core/foundation/fault.ts'
import { explainListening } from '../../core/net/listen-fault.ts'
import { renderProblem } from '../../core/config/settings-parser.ts'
import type { Reloaded } from '../../services/config/config.ts'
import { readVersion } from '../../services/host/package-manifest.ts'
import { createPasswords } from '../../services/access/passwords.ts'
import { createServerLog, type ServerLog } from '../../terminal/text/server-log.ts'
import { awaitEnding } from '../../services/host/watch.ts'
import { watchRequests } from '../../web/http/closing.ts'
import { createEntrance, type Entrance } from '../../web/http/entrance.ts'
import { tuneServer } from '../../web/http/limits.ts'
import { decideFolders, readConfiguration, type LineConfig } from './assembly/configuration.ts'
import { SUCCESS } from '../../core/command/server-exit.ts'
import { createMachineServer } from './server.ts'
import { openState } from './assembly/state.ts'
import type {
  Listening,
  ListenAddress,
  ProcessEnvironment,
} from './assembly/process-environment.ts'
import type { Arguments } from '../../core/command/arguments.ts'

/** What is under way may go on for so long once the server is asked to end. */
const GRACE_MS = 8000

export async function serve(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  const config = await readConfiguration(environment, given)
  const log = createServerLog({
    stderr: environment.stderr,
    env: environment.env,
    level: () => config.current().log.level,
    now: () => new Date(),
  })
  for (const problem of config.problems()) log.warn(renderProblem(problem))
  const release = await readVersion()
  await using state = await openState({ config, release, visit: false, log })
  const passwords = createPasswords({
    path: decideFolders(config).password,
    configured: () => config.current().admin,
  })
  const generated = await passwords.ensure()
  const cacheBeside = await startCache(environment, given, config)
  const parts = { environment, config, state, log, release, passwords, cacheBeside }
  await using server = await createMachineServer(parts)
  const listening = await listen(environment, createEntrance(server.app, log), placeOf(config))
  tuneServer(listening.server)
  const closing = watchRequests(listening.server)
  log.info(`flasher-web ${release} listens on ${listening.urls.join(' ')}`)
  announce(environment, config, listening, { generated, cacheBeside })
  reloadOnHangup(environment, config, log, listening)
  await awaitEnding(environment.signal)
  log.info('ending: no new connections are taken')
  server.endChannels()
  await closing.end(GRACE_MS)
  return SUCCESS
}

/** Only where a cache service can be started, and no other is set. */
async function startCache(
  { startCache: start }: ProcessEnvironment,
  given: Arguments,
  config: LineConfig,
): Promise<string | null> {
  const { withcache, cache, server } = config.current()
  if (start === undefined || withcache.url !== '') return null
  const isChosen = config.originOf('cache', 'host')?.by !== 'default'
  return start({
    host: isChosen ? cache.host : server.host,
    port: cache.port,
    stateDir: config.stateDir,
    named: given.lists['config'] ?? [],
  })
}

async function listen(
  environment: ProcessEnvironment,
  handler: Entrance,
  place: ListenAddress,
): Promise<Listening> {
  try {
    return await environment.listen(handler, place)
  } catch (cause) {
    throw explainListening(cause, { ...place, section: 'server' })
  }
}

function placeOf(config: LineConfig): ListenAddress {
  const { host, port, tls_cert: cert, tls_key: key } = config.current().server
  if ((cert === '') !== (key === '')) {
    throw new Fault('input-invalid', 'server.tls_cert and server.tls_key belong together', {
      hint: 'Set both for HTTPS, or none.',
    })
  }
  return { host, port, tls: cert === '' ? null : { cert, key } }
}

interface Announced {
  /** The password that was made at this start. */
  readonly generated: string | null
  readonly cacheBeside: string | null
}

/** For the person who started it; logs are kept and read by others, so the password is only here. */
function announce(
  { stdout }: ProcessEnvironment,
  config: LineConfig,
  { urls }: Listening,
  { generated, cacheBeside }: Announced,
): void {
  const folders = decideFolders(config)
  const lines = urls.map((url) => `Pages:    ${url}ui`)
  if (generated !== null) {
    lines.push(
      `Password: ${generated}`,
      `          made now and not shown again; its hash is in ${folders.password}`,
      '          (flasher-web password sets another)',
    )
  }
  if (cacheBeside !== null) {
    lines.push(
      `Images:   copy them into ${folders.cache}, or add them at ${cacheBeside}`,
      'Next:     log in; the checklist there says what is missing, down to the DHCP lines',
    )
  }
  stdout.write(`${lines.join('\n')}\n`)
}

function reloadOnHangup(
  { onHangup }: ProcessEnvironment,
  config: LineConfig,
  log: ServerLog,
  listening: Listening,
): void {
  onHangup(() => {
    listening.renewCertificate().catch((thrown: unknown) => {
      log.error(`the certificate stays as it was: ${renderError(thrown)}`)
    })
    config.reload().then(
      ({ problems, changed }) => {
        for (const problem of problems) log.warn(renderProblem(problem))
        if (changed.length === 0) log.info('configuration read: nothing changed in effect')
      },
      (thrown: unknown) => log.error(`the configuration stays as it was: ${renderError(thrown)}`),
    )
  })
  config.listen((reloaded) => logReload(reloaded, log))
}

function logReload({ changed, pending }: Reloaded, log: ServerLog): void {
  if (changed.length > 0) log.info(`configuration: ${changed.join(', ')} changed`)
  if (changed.length > 0 && pending.length > 0)
    log.warn(`these need a restart: ${pending.join(', ')}`)
}
