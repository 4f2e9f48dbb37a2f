/** The services behind the pages: settings, backups and network boot. */
import type { Backups } from '../../../../services/backup/backups.ts'
import type { Config } from '../../../../services/config/config.ts'
import type { SettingsStore } from '../../../../services/state/settings-store.ts'
import type { Netboot } from '../../assembly/netboot.ts'
import type { SETTINGS } from '../../rules/settings.ts'

export interface PageServices {
  readonly config: Config<typeof SETTINGS>
  readonly store: SettingsStore
  readonly backups: Backups
  readonly netboot: Netboot
}
