/** Current line: how its server listens, whether it leads or not. */
import type { LineConfig } from './configuration.ts'

export const listenSettingsOf = (config: LineConfig) => ({
  ...config.current().server,
  settingHint:
    'Set them with FLASHER_SERVER_HOST and FLASHER_SERVER_PORT, or [server] host and port.',
})
