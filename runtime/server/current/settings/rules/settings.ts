/** Current line: every setting of `flasher-web`, with its title, group, kind, default and meaning ("Configuration"). */
import { upperFirst } from '#kit/foundation/text.ts'
import * as kinds from '#kit/config/rules/setting-kinds.ts'
import {
  listForeignSections,
  settingOf,
  type SettingsTable,
  variablesOf,
  type Setting,
  SECTIONS,
} from '#kit/config/rules/setting.ts'
import {
  ADMIN_SETTINGS,
  CACHE_SETTINGS,
  DISCOVERY_SETTINGS,
  HISTORY_SETTINGS,
  OUTPUT_SETTINGS,
  REACH_SETTINGS,
  RELEASE_SETTINGS,
  RUN_PATIENCE,
  S3_SETTINGS,
  SERVER_PORT,
  SOURCE_SETTINGS,
  SESSION_SECRET,
  STATE_DIR,
  WARN_FREE_BYTES,
} from '#kit/config/rules/shared-settings.ts'
import {
  type KnownElsewhere,
  parseSettings as parse,
  renderFallback,
  type SettingsSources,
} from '#kit/config/rules/settings-parser.ts'
import { PROVIDER_SETTINGS } from '#kit/config/rules/provider-settings.ts'
import {
  type Entry,
  COMMAND_ENVIRONMENT,
  LIVE_ENVIRONMENT,
  ORDER_ENVIRONMENT,
  SERVER_ENVIRONMENT,
  WIZARD_ENVIRONMENT,
} from '#kit/terminal/command/rules/command.ts'

const { wholeNumber, toggle, choice, path, duration, baseUrl } = kinds
const setting = settingOf('flasher-web')

const shortDuration: typeof duration = {
  ...duration,
  schema: duration.schema.refine((seconds) => seconds <= 3600),
  wants: 'a span of at most 1h, like 90s or 5m',
  field: { as: 'text', example: '90 s' },
}

export const SETTINGS = {
  admin: ADMIN_SETTINGS,
  people: {
    nameless_login: setting({
      title: 'Administrator password login',
      topic: 'login',
      front: 'access',
      help: 'Allows the login with the shared administrator password. `off`: only while no person is an administrator.',
      kind: choice({ always: 'Always', off: 'Only if no person is an administrator' }),
      fallback: 'always',
    }),
  },
  oidc: PROVIDER_SETTINGS,
  server: {
    host: setting({
      title: 'Listen address',
      topic: 'listening',
      help: 'The address to listen on. `::` includes IPv6.',
      kind: kinds.host,
      fallback: '0.0.0.0',
      restart: true,
    }),
    port: SERVER_PORT,
    ...REACH_SETTINGS,
    session_secret: SESSION_SECRET,
  },
  paths: {
    state_dir: STATE_DIR,
    boot_dir: setting({
      title: 'Netboot folder',
      topic: 'folders',
      help: 'The files of live systems, served below `/boot/`.',
      kind: path('/srv/flasher/boot'),
      fallback: '',
      restart: true,
      fallbackWords: '`<paths.state_dir>/boot`',
    }),
    backup_dir: setting({
      title: 'Backup folder',
      topic: 'folders',
      help: 'The folder of the backup storage `fs`.',
      kind: path('/srv/flasher/backups'),
      fallback: '',
      restart: true,
      fallbackWords: '`<paths.state_dir>/backups`',
    }),
  },
  withcache: {
    url: setting({
      title: 'Address of the cache service',
      topic: 'upstream',
      help: 'The cache service that holds your images.',
      kind: baseUrl('http://192.0.2.10:8081'),
      fallback: '',
      card: 'ramboot',
    }),
    token: setting({
      title: 'Token for the cache service',
      topic: 'upstream',
      help: 'The `cache.token` of the cache service. With it, the cache knows which images machines use, and keeps them.',
      kind: kinds.secretText,
      fallback: '',
    }),
  },
  sources: SOURCE_SETTINGS,
  s3: S3_SETTINGS,
  cache: CACHE_SETTINGS,
  ...RELEASE_SETTINGS,
  flash: {
    delta: setting({
      title: 'Write only what differs',
      topic: 'flashing',
      help: 'Machines read their disks and write only what differs. Only for images with an index (`flasher pack`).',
      kind: toggle,
      fallback: false,
    }),
  },
  images: {
    require_bootable: setting({
      title: 'Only images that start',
      topic: 'flashing',
      help: 'Refuses to arm a machine whose firmware certainly does not start its image; one that is armed already opens the wizard. An image or firmware that is not known is not refused.',
      kind: toggle,
      fallback: false,
    }),
  },
  pxe: {
    servers: setting({
      title: 'Servers of this site',
      topic: 'boot',
      help: 'All servers of this site, as machines reach them. A machine without an answer tries the next one. The list may include this server. Leave empty for this server alone.',
      kind: kinds.serverUrls,
      fallback: [],
    }),
    tokens: setting({
      title: 'Boot tokens',
      topic: 'boot',
      help: 'Machines must prove with a token that this server booted them. `prefer`: only machines that can.',
      kind: choice({ off: 'Off', prefer: 'Machines that can', require: 'All machines' }),
      fallback: 'off',
    }),
    tokens_hours: setting({
      title: 'Lifetime of boot tokens (hours)',
      topic: 'boot',
      help: 'How long a boot token is valid. It must outlast a flash, and a person at the wizard.',
      kind: wholeNumber(1, 8760),
      fallback: 24,
    }),
    max_flashes: setting({
      title: 'Simultaneous flashes',
      topic: 'flashing',
      front: 'flashing',
      help: 'How many machines may flash at the same time. The others wait in line. 0: no limit.',
      kind: wholeNumber(0, 100_000, { 0: 'No limit' }),
      fallback: 0,
    }),
    flash_silence: setting({
      title: 'Skip a silent machine after',
      topic: 'flashing',
      help: 'How long a flashing machine may be silent before the next one in line starts.',
      kind: duration,
      fallback: 1800,
    }),
    armed_hours: setting({
      title: 'Disarm machines after (hours)',
      topic: 'flashing',
      help: 'A machine that is armed to flash once is disarmed unless it boots the live system in this time. 0: never.',
      kind: wholeNumber(0, 8760, { 0: 'Never' }),
      fallback: 0,
    }),
    run_patience: RUN_PATIENCE,
    inventory_refresh: setting({
      title: 'Refresh disk inventory after',
      topic: 'boot',
      help: 'How old a disk inventory may be before the live system takes a new one. `0`: at every second boot.',
      kind: duration,
      fallback: 86_400,
    }),
    loop_limit: setting({
      title: 'Boots until a loop is suspected',
      topic: 'boot',
      help: 'How many unfinished live boots in a row count as a boot loop.',
      kind: wholeNumber(1, 1000),
      fallback: 5,
    }),
    boot_disk_once_after_flash: setting({
      title: 'Boot the disk once between flashes',
      topic: 'flashing',
      help: 'Machines in the mode `flasher-flash-always` boot their disk once between two flashes.',
      kind: toggle,
      fallback: false,
    }),
    ...DISCOVERY_SETTINGS,
  },
  power: {
    networks: setting({
      title: 'Networks of BMCs',
      topic: 'power',
      front: 'power',
      help: 'The networks of your BMCs, wake-on-LAN and power hooks, as addresses and CIDR ranges. Leave empty to turn power control off.',
      kind: kinds.ranges,
      fallback: [],
    }),
    patience: setting({
      title: 'Time to turn on or off',
      topic: 'power',
      help: 'How long a machine may take to turn on or off before that counts as failed.',
      kind: shortDuration,
      fallback: 120,
    }),
    stagger: setting({
      title: 'Pause between machines',
      topic: 'power',
      help: 'How long the server waits between two machines when it turns on several.',
      kind: shortDuration,
      fallback: 2,
    }),
  },
  proof: {
    enabled: setting({
      title: 'Wait for the first boot',
      topic: 'flashing',
      front: 'flashing',
      help: 'After each flash, the server waits until the new system has booted. First-boot templates report the boot.',
      kind: toggle,
      fallback: false,
    }),
    limit: setting({
      title: 'Longest first boot',
      topic: 'flashing',
      help: 'How long a new system may take to be seen after its flash.',
      kind: shortDuration,
      fallback: 1800,
    }),
    url: setting({
      title: 'Address of the server for new systems',
      topic: 'flashing',
      help: 'Where new systems report their boot. Leave empty to use the address that the machine used.',
      kind: baseUrl('http://192.0.2.10:8080'),
      fallback: '',
    }),
    port: setting({
      title: 'SSH port of new systems',
      topic: 'flashing',
      help: 'The SSH port of new systems, such as 22. A new host key counts as booted. 0 turns this off.',
      kind: kinds.wholeNumber(0, 65_535),
      fallback: 0,
    }),
  },
  notify: {
    networks: setting({
      title: 'Local receivers',
      topic: 'notifications',
      front: 'notifications',
      help: 'Addresses and CIDR ranges of this host, loopback or link-local that may receive notifications. All other addresses are allowed.',
      kind: kinds.ranges,
      fallback: [],
    }),
  },
  netboot: {
    tftp_probe_host: setting({
      title: 'TFTP server to check',
      topic: 'boot',
      help: 'The host whose TFTP daemon is checked.',
      kind: kinds.hostOrNone,
      fallback: '',
      fallbackWords: '`127.0.0.1`',
    }),
  },
  dhcp: {
    proxy: setting({
      title: 'Proxy beside the DHCP server',
      topic: 'boot',
      help: 'Networks of this host in which a proxy tells machines what to boot, beside the DHCP server. It assigns no addresses. Leave empty to turn it off.',
      kind: kinds.networks,
      fallback: [],
    }),
  },
  database: {
    url: setting({
      title: 'Address of the shared database',
      topic: 'database',
      help: 'The PostgreSQL database that keeps the state (`postgres://user:password@host/name`). Several servers may share it. Leave empty if this server stands alone.',
      kind: kinds.secretText,
      fallback: '',
      restart: true,
      kept: true,
    }),
    password_file: setting({
      title: 'File with the password of the shared database',
      topic: 'database',
      help: 'A file with the password on its first line, instead of one in the address.',
      kind: path('/etc/flasher/database-password'),
      fallback: '',
      restart: true,
      kept: true,
    }),
    key: setting({
      title: 'Key for secrets in the shared database',
      topic: 'database',
      help: 'Encrypts the secrets that servers share (`openssl rand -base64 32`). Leave empty if each server keeps its own.',
      kind: kinds.secretText,
      fallback: '',
      restart: true,
      kept: true,
    }),
    key_file: setting({
      title: 'File with the key for secrets in the shared database',
      topic: 'database',
      help: 'A file with the key on its first line, instead of `database.key`.',
      kind: path('/etc/flasher/database-key'),
      fallback: '',
      restart: true,
      kept: true,
    }),
    own_url: setting({
      title: 'Address for the other servers',
      topic: 'database',
      help: 'Where the other servers reach this one. They pass requests on to it while it leads.',
      kind: baseUrl('http://192.0.2.7:8080'),
      fallback: '',
      restart: true,
      kept: true,
      fallbackWords: "this host's address on the way to the database, and `[server] port`",
    }),
  },
  backup: {
    enabled: setting({
      title: 'Scheduled backups',
      topic: 'backups',
      help: 'Backups are made on schedule.',
      kind: toggle,
      fallback: false,
      card: 'backup-schedule',
    }),
    cadence: setting({
      title: 'Backup interval',
      topic: 'backups',
      help: 'How often backups are made.',
      kind: choice({ daily: 'Every day', weekly: 'Every week', manual: 'Only manually' }),
      fallback: 'manual',
      card: 'backup-schedule',
    }),
    retention: setting({
      title: 'Backups to keep',
      topic: 'backups',
      help: 'The number of backups to keep.',
      kind: wholeNumber(1, 10_000),
      fallback: 7,
      card: 'backup-schedule',
    }),
    driver: setting({
      title: 'Backup storage',
      topic: 'backups',
      help: 'Where backups are stored: `fs` (a folder), `s3`, or another unstorage driver that is installed.',
      kind: kinds.nameLike('fs', 's3'),
      fallback: 'fs',
      restart: true,
    }),
    driver_options: setting({
      title: 'Options of the backup storage',
      topic: 'backups',
      help: 'Options of the backup storage.',
      kind: kinds.options,
      fallback: {},
      restart: true,
    }),
  },
  retention: {
    ...HISTORY_SETTINGS,
    boot_sets: setting({
      title: 'Live systems to keep',
      topic: 'retention',
      help: 'The number of live systems to keep for a roll-back.',
      kind: wholeNumber(1, 100),
      fallback: 2,
    }),
    warn_free_bytes: WARN_FREE_BYTES,
  },
  tuning: {
    max_upload_bytes: setting({
      title: 'Largest upload',
      topic: 'limits',
      help: 'The largest file that `PUT /boot/…` accepts.',
      kind: kinds.bytes,
      fallback: 200 * 2 ** 30,
    }),
  },
  ...OUTPUT_SETTINGS,
} as const satisfies SettingsTable

/** Sections of other programs, and keys of the earlier line. */
const RETIRED: KnownElsewhere = {
  ...listForeignSections(Object.keys(SETTINGS)),
  'server.trusted_proxy': 'no longer used: list the proxy in server.trusted_proxies',
  'paths.catalog_file': 'no longer used: the catalog is kept as catalog.toml in paths.state_dir',
  'tuning.backup_max_parallel': 'no longer used: one backup is made at a time',
  'wizard.*':
    'not read from files: the wizard has FLASHER_IMAGE_ROOT, FLASHER_REGISTER_UEFI_BOOT and FLASHER_DEFAULT_CATALOG',
  'nbdmux.*': 'not read: that component is not part of this program',
}

export const parseSettings = (sources: SettingsSources) => parse(SETTINGS, sources, RETIRED)

/** A section of the table without words here does not compile. */
const ABOUT: Readonly<Record<keyof typeof SETTINGS, string>> = SECTIONS

const HEAD = `# Settings

Made by \`flasher-web config reference\`; do not edit. [server.md](server.md) explains how files and
variables work together.

In a file, a key stands in its section:

\`\`\`toml
[server]
port = 8080
\`\`\`

Every key has an environment variable, which overrides it. An empty variable is ignored. Separate
lists with commas there. Keys marked ↻ take effect after a restart, all others as soon as the
configuration is read again (\`SIGHUP\`, \`systemctl reload flasher-web\`, or an edit on the settings
page). Keys marked 🔒 are never shown or logged. The wizard and the commands read the
[other variables](#other-variables).
`

export function renderReference(): string {
  const sections = Object.entries(SETTINGS).map(([section, keys]) => {
    const rows = Object.entries(keys).map(([key, row]) => renderRow(section, key, row))
    const about = new Map(Object.entries(ABOUT)).get(section) ?? ''
    return [`## \`[${section}]\``, '', about, '', ...rows, ''].join('\n')
  })
  return `${HEAD}\n${sections.join('\n')}\n${renderVariables()}`
}

const VARIABLES: readonly (readonly [string, string, readonly Entry[]])[] = [
  [
    'Server programs',
    'Read by `flasher-web` and `flasher-cache`; the variables for proxies, authorities and registries, listed below, count for them as well.',
    SERVER_ENVIRONMENT,
  ],
  ['Flashing by a server', 'Read by `flasher-web flash`.', ORDER_ENVIRONMENT],
  ['Commands', 'Read by `flasher`, the wizard included.', COMMAND_ENVIRONMENT],
  ['Wizard', 'Read by the wizard alone.', WIZARD_ENVIRONMENT],
  [
    'Live system',
    'Set by the live system for the wizard, from its kernel command line, as are `FLASHER_PXE_TOKEN` and `FLASHER_DEFAULT_CATALOG`.',
    LIVE_ENVIRONMENT,
  ],
]

function renderVariables(): string {
  const groups = VARIABLES.map(([title, about, entries]) => {
    const rows = entries.map(([names, meaning]) => {
      const quoted = names.split(', ').map((name) => `\`${name}\``)
      return `- **${quoted.join(', ')}** ${upperFirst(meaning)}.`
    })
    return [`### ${title}`, '', about, '', ...rows, ''].join('\n')
  })
  return ['## Other variables', '', 'These have no key in a file.', '', ...groups].join('\n')
}

function renderRow(section: string, key: string, row: Setting<unknown>): string {
  const marks = `${row.reload === 'restart' ? ' ↻' : ''}${row.isSecret ? ' 🔒' : ''}`
  const variables = variablesOf(section, key, row).map((name) => `\`${name}\``)
  const facts = [`Must be ${row.wants}`, `default: ${renderFallback(row)}`, variables.join(' or ')]
  return `- **\`${key}\`**${marks} ${row.help}\n  ${facts.join('; ')}.`
}
