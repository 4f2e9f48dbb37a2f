/** `FLASHER_LINE=earlier flasher-web`: runs the server until it is asked to end. */
import { renderProblem } from '../../core/config/settings-parser.ts'
import type { Arguments } from '../../core/command/arguments.ts'
import { SUCCESS } from '../../core/command/server-exit.ts'
import { listen, reloadOnHangup } from '../../program/listening.ts'
import type { Listening, ProcessEnvironment } from '../../program/process-environment.ts'
import { readVersion } from '../../services/host/package-manifest.ts'
import { awaitEnding } from '../../services/host/watch.ts'
import { createServerLog } from '../../terminal/text/server-log.ts'
import { watchRequests } from '../../web/http/closing.ts'
import { createEntrance } from '../../web/http/entrance.ts'
import { decideFolders, readConfiguration, type LineConfig } from './assembly/configuration.ts'
import { openPassword } from './assembly/password.ts'
import { openState } from './assembly/state.ts'
import { createMachineServer } from './server.ts'

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
  const password = await openPassword(config, environment.env, log)
  await using state = await openState({ config, release, log })
  const bound = { port: config.current().server.port }
  const port = () => bound.port
  const parts = { environment, config, state, log, release, password, port }
  await using server = await createMachineServer(parts)
  const listening = await listen(environment, createEntrance(server.app, log), {
    ...config.current().server,
    settingHint: 'Set them with FLASHER_WEB_HOST and FLASHER_WEB_PORT.',
  })
  bound.port = listening.port
  const closing = watchRequests(listening.server)
  log.info(`flasher-web ${release} (earlier line) listens on ${listening.urls.join(' ')}`)
  announce(environment, config, listening, password.user)
  reloadOnHangup(environment, config, log, listening)
  await awaitEnding(environment.signal)
  log.info('stopping: no new connections are accepted')
  server.endChannels()
  await closing.end(GRACE_MS)
  return SUCCESS
}

/** For the person who started it. */
function announce(
  { stdout }: ProcessEnvironment,
  config: LineConfig,
  { urls }: Listening,
  user: string,
): void {
  const lines = [
    ...urls.map((url) => `Pages:    ${url}ui`),
    `Password: the one of ${user} on this system; passwd changes it`,
    `Images:   ${decideFolders(config).images}`,
  ]
  stdout.write(`${lines.join('\n')}\n`)
}
