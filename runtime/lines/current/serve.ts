/** `flasher-web`: runs the server until it is asked to end. */
import { toNodeHandler, type NodeHandler } from 'h3/node'
import { Fault, renderError } from '../../core/fault.ts'
import { renderProblem } from '../../core/settings.ts'
import type { Reloaded } from '../../services/config.ts'
import { readVersion } from '../../services/manifest.ts'
import { createServerLog, type ServerLog } from '../../terminal/server-log.ts'
import { tuneServer } from '../../web/limits.ts'
import { readConfiguration, type LineConfig } from './assembly/configuration.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import { createMachineServer } from './server.ts'
import { openState } from './assembly/state.ts'
import type { Arguments, Listening, Place, World } from './commands/session.ts'

/** What is under way may go on for so long once the server is asked to end. */
const GRACE_MS = 8000

export async function serve(world: World, given: Arguments): Promise<number> {
  const config = await readConfiguration(world, given)
  const log = createServerLog({
    stderr: world.stderr,
    env: world.env,
    level: () => config.current().log.level,
    now: () => new Date(),
  })
  for (const problem of config.problems()) log.warn(renderProblem(problem))
  const release = await readVersion()
  await using state = await openState({ config, release, visit: false, log })
  await using server = await createMachineServer({ world, config, state, log, release })
  const listening = await listen(world, toNodeHandler(server.app), placeOf(config))
  tuneServer(listening.server)
  announce(world, log, listening, { release, generated: server.generatedPassword })
  reloadOnHangup(world, config, log)
  await ended(world.signal)
  log.info('ending: no new connections are taken')
  await close(listening, () => server.endChannels())
  return SUCCESS
}

async function listen(world: World, handler: NodeHandler, place: Place): Promise<Listening> {
  try {
    return await world.listen(handler, place)
  } catch (cause) {
    const { host, port } = place
    throw new Fault('busy', `cannot listen on ${host} port ${port}: ${renderError(cause)}`, {
      cause,
      hint: 'FLASHER_SERVER_PORT or [server] port chooses another.',
    })
  }
}

function placeOf(config: LineConfig): Place {
  const { host, port, tls_cert: cert, tls_key: key } = config.current().server
  if ((cert === '') !== (key === '')) {
    throw new Fault('input-invalid', 'server.tls_cert and server.tls_key belong together', {
      hint: 'Set both for HTTPS, or none.',
    })
  }
  return { host, port, tls: cert === '' ? null : { cert, key } }
}

interface Announced {
  readonly release: string
  readonly generated: { readonly password: string; readonly path: string } | null
}

function announce(
  { stdout }: World,
  log: ServerLog,
  { urls }: Listening,
  { release, generated }: Announced,
): void {
  log.info(`flasher-web ${release} listens on ${urls.join(' ')}`)
  for (const url of urls) stdout.write(`Pages: ${url}ui\n`)
  if (generated === null) return
  // On standard output alone, and this once: logs are kept and read by others.
  stdout.write(`Password: ${generated.password}\n`)
  stdout.write(`  It was made now and is not shown again; its hash is in ${generated.path}.\n`)
  stdout.write('  "flasher-web password" sets another.\n')
}

function reloadOnHangup({ onHangup }: World, config: LineConfig, log: ServerLog): void {
  onHangup(() => {
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

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Requests under way may finish; live channels and idle connections end at once. */
async function close({ server }: Listening, endChannels: () => void): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  endChannels()
  server.closeIdleConnections()
  const cutting = setTimeout(() => server.closeAllConnections(), GRACE_MS)
  await closed
  clearTimeout(cutting)
}
