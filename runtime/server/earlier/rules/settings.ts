/** Earlier line: every setting of its server, with the variables of the specification ("Configuration"). */
import { DEFAULT_IMAGE_ROOT } from '#appliance/disk-images.ts'
import * as kinds from '#kit/config/rules/setting-kinds.ts'
import { listForeignSections, settingOf, type SettingsTable } from '#kit/config/rules/setting.ts'
import {
  DISCOVERY_SETTINGS,
  HISTORY_SETTINGS,
  OUTPUT_SETTINGS,
  REACH_SETTINGS,
  RELEASE_SETTINGS,
  RUN_PATIENCE,
  SERVER_PORT,
  SESSION_SECRET,
  WARN_FREE_BYTES,
} from '#kit/config/rules/shared-settings.ts'
import {
  parseSettings as parse,
  type KnownElsewhere,
  type SettingsSources,
} from '#kit/config/rules/settings-parser.ts'

const { path, port } = kinds
const setting = settingOf('flasher-web')

export const SETTINGS = {
  admin: {
    password_helper: setting({
      title: 'Password helper',
      topic: 'login',
      help: 'The program that checks the password of the user who runs the server.',
      kind: path('/usr/sbin/unix_chkpwd'),
      fallback: '',
      restart: true,
      fallbackWords: '`unix_chkpwd` on the search path',
      kept: true,
    }),
  },
  server: {
    host: setting({
      title: 'Listen address',
      topic: 'listening',
      help: 'The address to listen on. `::` includes IPv6.',
      kind: kinds.host,
      fallback: '0.0.0.0',
      restart: true,
      env: 'FLASHER_WEB_HOST',
    }),
    port: { ...SERVER_PORT, env: 'FLASHER_WEB_PORT' },
    ...REACH_SETTINGS,
    session_secret: SESSION_SECRET,
  },
  paths: {
    state_dir: setting({
      title: 'State folder',
      topic: 'folders',
      help: 'Where the server keeps its state: database and keys.',
      kind: path('/var/lib/flasher'),
      fallback: '',
      restart: true,
      env: 'FLASHER_STATE_DIR',
      fallbackWords: '`/var/lib/flasher` for root, else `~/.local/state/flasher`',
      kept: true,
    }),
    image_root: setting({
      title: 'Image folder',
      topic: 'folders',
      help: 'The folder whose images are offered.',
      kind: path('/srv/flasher/images'),
      fallback: DEFAULT_IMAGE_ROOT,
      restart: true,
      env: 'FLASHER_IMAGE_ROOT',
      kept: true,
    }),
    boot_dir: setting({
      title: 'Netboot folder',
      topic: 'folders',
      help: 'The files of live systems, served below `/boot/`.',
      kind: path('/srv/flasher/boot'),
      fallback: '',
      restart: true,
      env: 'FLASHER_BOOT_DIR',
      fallbackWords: '`<paths.state_dir>/boot`',
      kept: true,
    }),
    pxe_helper: setting({
      title: 'PXE helper',
      topic: 'boot',
      help: 'The program that activates PXE proxy-DHCP, run by sudo.',
      kind: path('/usr/local/sbin/flasher-web-activate-pxe'),
      fallback: '',
      fallbackWords: '`flasher-web-activate-pxe` in `/usr/local/sbin` or `/usr/sbin`',
      kept: true,
    }),
  },
  // This line has no card for them: the list of settings changes them.
  boot: {
    release_repo: { ...RELEASE_SETTINGS.boot.release_repo, card: null },
    release_tag: { ...RELEASE_SETTINGS.boot.release_tag, card: null },
  },
  releases: RELEASE_SETTINGS.releases,
  pxe: { run_patience: RUN_PATIENCE, ...DISCOVERY_SETTINGS },
  workflow: {
    program: setting({
      title: 'Workflow program',
      topic: 'workflows',
      help: 'The program that runs the workflows of `cijoe-online`.',
      kind: path('/usr/local/bin/cijoe'),
      fallback: '',
      fallbackWords: '`cijoe` on the search path',
      kept: true,
    }),
    time_limit: setting({
      title: 'Time limit of a workflow',
      topic: 'workflows',
      help: 'How long a run waits until the machine answers, and then how long its workflow may take.',
      kind: kinds.duration,
      fallback: 1800,
    }),
    parallel: setting({
      title: 'Simultaneous workflows',
      topic: 'workflows',
      help: 'How many workflows run at once.',
      kind: kinds.wholeNumber(1, 256),
      fallback: 8,
      restart: true,
    }),
    ssh_port: setting({
      title: 'SSH port of machines',
      topic: 'workflows',
      help: 'The port of SSH on the machines.',
      kind: port,
      fallback: 22,
    }),
  },
  retention: {
    ...HISTORY_SETTINGS,
    warn_free_bytes: WARN_FREE_BYTES,
  },
  tuning: {
    max_upload_bytes: setting({
      title: 'Largest upload',
      topic: 'limits',
      help: 'The largest file that `PUT /images/…` and `PUT /boot/…` take.',
      kind: kinds.bytes,
      fallback: 200 * 2 ** 30,
    }),
  },
  ...OUTPUT_SETTINGS,
} as const satisfies SettingsTable

const SYSTEM_PASSWORD =
  'not available in the earlier line, which uses the password of the user who runs the server; change it with passwd'

/** Sections for the cache and the current line's server. */
const OF_OTHERS: KnownElsewhere = {
  'admin.password': SYSTEM_PASSWORD,
  'admin.password_hash': SYSTEM_PASSWORD,
  ...listForeignSections(Object.keys(SETTINGS)),
}

export const parseSettings = (sources: SettingsSources) => parse(SETTINGS, sources, OF_OTHERS)
