/** `FLASHER_LINE=earlier flasher-web`: runs the server until it is asked to end. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { openLog, runServer } from '#kit/program/listening.ts'
import type { Listening, ProcessEnvironment } from '#kit/program/process-environment.ts'
import { openSystemPassword } from '#fleet/access/system-password.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import { createShell } from '#kit/host/shell.ts'
import { decideFolders, readConfiguration, type LineConfig } from './assembly/configuration.ts'
import { openState } from './assembly/state.ts'
import { createMachineServer } from './server.ts'

export async function serve(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  const config = await readConfiguration(environment, given)
  const log = openLog(environment, config, () => config.current().log.level)
  const release = await readVersion()
  const password = await openSystemPassword({
    shell: createShell(environment),
    helper: config.current().admin.password_helper,
    onExpired: (name) => log.warn(`a login was refused: the account ${name} has expired`),
  })
  await using state = await openState({ config, release, log })
  let { port } = config.current().server
  const parts = { environment, config, state, log, release, password, port: () => port }
  await using server = await createMachineServer(parts)
  return await runServer(environment, {
    app: server.app,
    endChannels: server.endChannels,
    config,
    log,
    settings: {
      ...config.current().server,
      settingHint: 'Set them with FLASHER_WEB_HOST and FLASHER_WEB_PORT.',
    },
    announce(listening) {
      port = listening.port
      log.info(`flasher-web ${release} (earlier line) listens on ${listening.urls.join(' ')}`)
      announce(environment, config, listening, password.user)
    },
  })
}

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
