/** Every setting of `flasher-cache`; it shares its files with `flasher-web`, and ignores that one's settings. */
import {
  ADMIN_SETTINGS,
  CACHE_SETTINGS,
  PUBLIC_URL,
  S3_SETTINGS,
  SESSION_SECRET,
  STATE_DIR,
} from '../../kit/config/rules/shared-settings.ts'
import { listForeignSections } from '../../kit/config/rules/setting-sections.ts'
import type { SettingsTable } from '../../kit/config/rules/setting.ts'
import {
  parseSettings as parse,
  type SettingsSources,
} from '../../kit/config/rules/settings-parser.ts'

export const SETTINGS = {
  admin: ADMIN_SETTINGS,
  paths: { state_dir: STATE_DIR },
  // One key for both, so that there is one session; pages link to the server there.
  server: { session_secret: SESSION_SECRET, public_url: PUBLIC_URL },
  s3: S3_SETTINGS,
  cache: CACHE_SETTINGS,
} as const satisfies SettingsTable

/** Whoever sets a key of another section means a server; `server` and `paths` have keys of both. */
const ELSEWHERE = {
  ...listForeignSections(['admin', 'paths', 's3', 'cache']),
  'wizard.*': null,
  'paths.boot_dir': null,
  'paths.backup_dir': null,
}

/** Reads the settings of the cache; sections of the server in the same files are no mistakes. */
export const parseSettings = (sources: SettingsSources) => parse(SETTINGS, sources, ELSEWHERE)
