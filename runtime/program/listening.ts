/** Starts to listen as a server's settings say, and reads its configuration again when asked to. */
import { Fault, renderError } from '../core/foundation/fault.ts'
import type { SettingsTable } from '../core/config/setting.ts'
import { explainListening } from '../core/net/listen-fault.ts'
import { renderProblem } from '../core/config/settings-parser.ts'
import type { Config, Reloaded } from '../services/config/config.ts'
import type { ServerLog } from '../terminal/text/server-log.ts'
import type { Entrance } from '../web/http/entrance.ts'
import { tuneServer } from '../web/http/limits.ts'
import type { Listening, ListenAddress, ProcessEnvironment } from './process-environment.ts'

/** Of the settings in section `[server]`. */
interface ListenSettings {
  readonly host: string
  readonly port: number
  readonly tls_cert: string
  readonly tls_key: string
  /** How another address is chosen, for the fault that says that this one is taken. */
  readonly settingHint: string
}

export async function listen(
  environment: Pick<ProcessEnvironment, 'listen'>,
  handler: Entrance,
  settings: ListenSettings,
): Promise<Listening> {
  const address = addressOf(settings)
  try {
    const listening = await environment.listen(handler, address)
    tuneServer(listening.server)
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

export function reloadOnHangup<Table extends SettingsTable>(
  { onHangup }: Pick<ProcessEnvironment, 'onHangup'>,
  config: Config<Table>,
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
