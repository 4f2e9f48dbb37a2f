/** Earlier line: every setting of its server, with the variables of the specification ("Configuration"). */
import { DEFAULT_IMAGE_ROOT } from '../../../../appliance/disk-images.ts'
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
import { SESSION_SECRET } from '../../../kit/config/rules/shared-settings.ts'
import { setting, type SettingsTable } from '../../../kit/config/rules/setting.ts'
import {
  parseSettings as parse,
  type KnownElsewhere,
  type SettingsSources,
} from '../../../kit/config/rules/settings-parser.ts'

const { path, port } = kinds
const restart = true

export const SETTINGS = {
  admin: {
    password_helper: setting(
      path,
      '',
      'The program that checks the password of the user who runs the server.',
      { restart, fallbackWords: '`unix_chkpwd` on the search path' },
    ),
  },
  server: {
    host: setting(kinds.host, '0.0.0.0', 'The address to listen on; `::` for IPv6 too.', {
      restart,
      env: 'FLASHER_WEB_HOST',
    }),
    port: setting(port, 8080, 'The port to listen on.', { restart, env: 'FLASHER_WEB_PORT' }),
    ...REACH_SETTINGS,
    session_secret: SESSION_SECRET,
  },
  paths: {
    state_dir: setting(path, '', 'Where the server keeps its state: database and keys.', {
      restart,
      env: 'FLASHER_STATE_DIR',
      fallbackWords: '`/var/lib/flasher` for root, else `~/.local/state/flasher`',
    }),
    image_root: setting(path, DEFAULT_IMAGE_ROOT, 'The folder whose images are offered.', {
      restart,
      env: 'FLASHER_IMAGE_ROOT',
    }),
    boot_dir: setting(path, '', 'The files of live systems, served below `/boot/`.', {
      restart,
      env: 'FLASHER_BOOT_DIR',
      fallbackWords: '`<paths.state_dir>/boot`',
    }),
    pxe_helper: setting(path, '', 'The program that activates PXE proxy-DHCP, run by sudo.', {
      fallbackWords: '`flasher-web-activate-pxe` in `/usr/local/sbin` or `/usr/sbin`',
    }),
  },
  ...RELEASE_SETTINGS,
  pxe: { run_patience: RUN_PATIENCE, ...DISCOVERY_SETTINGS },
  workflow: {
    program: setting(path, '', 'The program that runs the workflows of `cijoe-online`.', {
      fallbackWords: '`cijoe` on the search path',
    }),
    time_limit: setting(
      kinds.duration,
      1800,
      'How long a run waits until the machine answers, and then how long its workflow may take.',
    ),
    parallel: setting(kinds.wholeNumber(1, 256), 8, 'How many workflows run at once.', { restart }),
    ssh_port: setting(port, 22, 'The port of SSH on the machines.'),
  },
  retention: {
    ...HISTORY_SETTINGS,
    warn_free_bytes: WARN_FREE_BYTES,
  },
  tuning: {
    max_upload_bytes: setting(
      kinds.bytes,
      200 * 2 ** 30,
      'The largest file that `PUT /images/…` and `PUT /boot/…` take.',
    ),
  },
  ...OUTPUT_SETTINGS,
} as const satisfies SettingsTable

const SYSTEM_PASSWORD =
  'not of the earlier line, whose password is that of the user who runs the server; passwd sets it'

/** Sections that the same files hold for the cache and for the server of the current line. */
const OF_OTHERS: KnownElsewhere = {
  'admin.password': SYSTEM_PASSWORD,
  'admin.password_hash': SYSTEM_PASSWORD,
  'cache.*': null,
  'withcache.*': null,
  'netboot.*': null,
  'backup.*': null,
}

/** See `kit/config/rules/settings-parser.ts`; this line's table and what it leaves to others. */
export const parseSettings = (sources: SettingsSources) => parse(SETTINGS, sources, OF_OTHERS)
