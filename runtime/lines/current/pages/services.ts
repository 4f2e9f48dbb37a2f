/** What pages show beside machines: settings, backups, what machines boot, the network. */
import type { Backups } from '../../../services/backups.ts'
import type { Config } from '../../../services/config.ts'
import type { SettingsStore } from '../../../services/settings-store.ts'
import type { Netboot } from '../assembly/netboot.ts'
import type { SETTINGS } from '../rules/settings.ts'

export interface PageServices {
  readonly config: Config<typeof SETTINGS>
  readonly store: SettingsStore
  readonly backups: Backups
  readonly netboot: Netboot
}
