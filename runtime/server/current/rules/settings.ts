/** Current line: every setting of `flasher-web`, with its type, default and meaning ("Configuration"). */
import * as kinds from '../../../kit/config/rules/setting-kinds.ts'
import {
  DISCOVERY_SETTINGS,
  HISTORY_SETTINGS,
  OUTPUT_SETTINGS,
  REACH_SETTINGS,
  RELEASE_SETTINGS,
  RUN_PATIENCE,
  WARN_FREE_BYTES,
} from '../../../kit/config/rules/server-settings.ts'
import {
  ADMIN_SETTINGS,
  CACHE_SETTINGS,
  SESSION_SECRET,
  STATE_DIR,
} from '../../../kit/config/rules/shared-settings.ts'
import { TOKEN_POLICIES } from './token.ts'
import { setting, type SettingsTable } from '../../../kit/config/rules/setting.ts'
import {
  parseSettings as parse,
  type KnownElsewhere,
  type SettingsSources,
} from '../../../kit/config/rules/settings-parser.ts'

const { wholeNumber, toggle, choice, text, path, port, duration, baseUrl } = kinds
const restart = true

export const SETTINGS = {
  admin: ADMIN_SETTINGS,
  server: {
    host: setting(kinds.host, '0.0.0.0', 'The address to listen on; `::` for IPv6 too.', {
      restart,
    }),
    port: setting(port, 8080, 'The port to listen on; network-boot firmware tries 8080, then 80.', {
      restart,
    }),
    ...REACH_SETTINGS,
    session_secret: SESSION_SECRET,
  },
  paths: {
    state_dir: STATE_DIR,
    boot_dir: setting(path, '', 'The files of live systems, served below `/boot/`.', {
      restart,
      fallbackWords: '`<paths.state_dir>/boot`',
    }),
    backup_dir: setting(path, '', 'Where the backup driver `fs` writes.', {
      restart,
      fallbackWords: '`<paths.state_dir>/backups`',
    }),
  },
  withcache: {
    url: setting(
      baseUrl,
      '',
      'The address of the cache service that holds the images; empty: none.',
    ),
    token: setting(
      kinds.secretText,
      '',
      'The `cache.token` of that service. With it, the server reports which images machines use, and the cache keeps them.',
      { secret: true },
    ),
  },
  cache: CACHE_SETTINGS,
  ...RELEASE_SETTINGS,
  flash: {
    delta: setting(
      toggle,
      false,
      'Whether machines read their disks and write only what differs, where the image has an index (`flasher pack`).',
    ),
  },
  pxe: {
    tokens: setting(
      choice(TOKEN_POLICIES),
      'off',
      'Whether machines must prove with a token from their boot script that this server booted them; `prefer`: only machines that can.',
    ),
    tokens_hours: setting(
      wholeNumber(1, 8760),
      24,
      'How long such a token is valid: longer than a flash takes, or a person at the wizard.',
    ),
    max_flashes: setting(
      wholeNumber(0, 100_000),
      0,
      'How many machines may flash at the same time, while the others wait in line; 0: no limit.',
    ),
    flash_silence: setting(
      duration,
      1800,
      'How long a flashing machine may go without a report before its place goes to the next in line.',
    ),
    run_patience: RUN_PATIENCE,
    inventory_refresh: setting(
      duration,
      86_400,
      'How old a disk inventory may be before the live system takes a new one; `0`: at every second boot.',
    ),
    loop_limit: setting(
      wholeNumber(1, 1000),
      5,
      'How many unfinished live boots in a row count as a boot loop.',
    ),
    boot_disk_once_after_flash: setting(
      toggle,
      false,
      'Whether `flasher-flash-always` lets a machine boot its disk once between two flashes.',
    ),
    ...DISCOVERY_SETTINGS,
  },
  netboot: {
    tftp_probe_host: setting(
      kinds.hostOrNone,
      '',
      'The host whose TFTP daemon the Netboot page checks.',
      { fallbackWords: '`127.0.0.1`' },
    ),
  },
  backup: {
    enabled: setting(toggle, false, 'Whether backups are made on schedule.'),
    cadence: setting(
      choice(['daily', 'weekly', 'manual']),
      'manual',
      'How often backups are made.',
    ),
    retention: setting(wholeNumber(1, 10_000), 7, 'The number of backups to keep.'),
    driver: setting(
      text,
      'fs',
      'Where backups are stored: `fs` (a folder), `s3`, or another unstorage driver whose package is installed.',
      { restart },
    ),
    driver_options: setting(kinds.options, {}, 'Options of that driver.', {
      secret: true,
      restart,
    }),
  },
  retention: {
    ...HISTORY_SETTINGS,
    boot_sets: setting(
      wholeNumber(1, 100),
      2,
      'The number of live systems to keep for a roll-back.',
    ),
    warn_free_bytes: WARN_FREE_BYTES,
  },
  tuning: {
    max_upload_bytes: setting(
      kinds.bytes,
      200 * 2 ** 30,
      'The largest file that `PUT /boot/…` accepts.',
    ),
  },
  ...OUTPUT_SETTINGS,
} as const satisfies SettingsTable

/** Keys of installations that came before this one. */
const RETIRED: KnownElsewhere = {
  'server.trusted_proxy': 'not read any more: list the proxy in server.trusted_proxies',
  'paths.catalog_file': 'not read any more: the catalog is kept as catalog.toml in paths.state_dir',
  'tuning.backup_max_parallel': 'not read any more: one backup is made at a time',
  'wizard.*':
    'not read from files: the wizard has FLASHER_IMAGE_ROOT, FLASHER_REGISTER_UEFI_BOOT and FLASHER_DEFAULT_CATALOG',
  'nbdmux.*': 'not read: that component is not part of this program',
}

/** See `kit/config/rules/settings-parser.ts`; this line's table and what it leaves out. */
export const parseSettings = (sources: SettingsSources) => parse(SETTINGS, sources, RETIRED)
