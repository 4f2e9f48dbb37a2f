/** What pages show beside machines: settings, backups, the network, boot releases. */
import type { Backups } from '../../../services/backups.ts'
import type { Config } from '../../../services/config.ts'
import type { SettingsStore } from '../../../services/settings-store.ts'
import type { SETTINGS } from '../rules/settings.ts'

export interface PageServices {
  readonly config: Config<typeof SETTINGS>
  readonly store: SettingsStore
  readonly backups: Backups
}
