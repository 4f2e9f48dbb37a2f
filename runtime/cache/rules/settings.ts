/** Every setting of `flasher-cache`; it shares its files with `flasher-web`, and ignores that one's settings. */
import {
  ADMIN_SETTINGS,
  CACHE_SETTINGS,
  PUBLIC_URL,
  S3_SETTINGS,
  SERVER_PORT,
  SESSION_SECRET,
  STATE_DIR,
} from '#kit/config/rules/shared-settings.ts'
import { listForeignSections, type SettingsTable } from '#kit/config/rules/setting.ts'
import { parseSettings as parse, type SettingsSources } from '#kit/config/rules/settings-parser.ts'

export const SETTINGS = {
  admin: ADMIN_SETTINGS,
  paths: { state_dir: STATE_DIR },
  // The same key, so that one session holds for both; its address, for links.
  server: { session_secret: SESSION_SECRET, public_url: PUBLIC_URL, port: SERVER_PORT },
  s3: S3_SETTINGS,
  cache: CACHE_SETTINGS,
} as const satisfies SettingsTable

/** Keys of other sections are meant for a server; `server` and `paths` have keys of both. */
const ELSEWHERE = {
  ...listForeignSections(['admin', 'paths', 's3', 'cache']),
  'wizard.*': null,
  'paths.boot_dir': null,
  'paths.backup_dir': null,
}

export const parseSettings = (sources: SettingsSources) => parse(SETTINGS, sources, ELSEWHERE)
