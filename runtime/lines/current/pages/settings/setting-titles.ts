/** Current line: what pages call each setting, and the groups in which the settings page lists them. */
import type { SETTINGS } from '../../rules/settings.ts'

type Table = typeof SETTINGS
/** `server.port` */
type SettingName = {
  [Section in keyof Table & string]: `${Section}.${keyof Table[Section] & string}`
}[keyof Table & string]

const TITLES = {
  'admin.password': 'Administrator password',
  'admin.password_hash': 'Hash of the administrator password',
  'server.session_secret': 'Key for sessions',
  'display.timezone': 'Time zone',
  'log.level': 'Log level',
  'metrics.open': 'Metrics without login',
  'server.host': 'Listen address',
  'server.port': 'Port',
  'server.public_url': 'Public address',
  'server.allowed_hosts': 'Allowed host names',
  'server.trusted_proxies': 'Trusted proxies',
  'server.tls_cert': 'HTTPS certificate',
  'server.tls_key': 'HTTPS key',
  'withcache.url': 'Address of the cache service',
  'withcache.token': 'Token for the cache service',
  'releases.base_url': 'Release site',
  'boot.release_repo': 'Release repository',
  'boot.release_tag': 'Release tag',
  'netboot.tftp_probe_host': 'TFTP server to check',
  'pxe.tokens': 'Boot tokens',
  'pxe.tokens_hours': 'Lifetime of boot tokens (hours)',
  'pxe.boot_disk_once_after_flash': 'Boot the disk once between flashes',
  'pxe.loop_limit': 'Boots until a loop is suspected',
  'pxe.inventory_refresh': 'Refresh disk inventory after',
  'pxe.discovery_per_minute': 'New machines per minute',
  'pxe.discovery_rows': 'Unassigned machines at most',
  'pxe.max_flashes': 'Simultaneous flashes',
  'pxe.flash_silence': 'Free the place of a silent machine after',
  'pxe.run_patience': 'Mark a flash as stalled after',
  'paths.state_dir': 'State folder',
  'paths.boot_dir': 'Netboot folder',
  'paths.backup_dir': 'Backup folder',
  'backup.enabled': 'Scheduled backups',
  'backup.cadence': 'Backup interval',
  'backup.retention': 'Backups to keep',
  'backup.driver': 'Backup storage',
  'backup.driver_options': 'Options of the backup storage',
  'retention.events': 'Events to keep',
  'retention.event_days': 'Keep events for (days)',
  'retention.runs': 'Flash runs to keep',
  'retention.run_days': 'Keep flash runs for (days)',
  'retention.bak_files': 'Databases of earlier releases to keep',
  'retention.boot_sets': 'Live systems to keep',
  'retention.warn_free_bytes': 'Warn below this much free space',
  'tuning.max_upload_bytes': 'Largest upload',
  'cache.host': 'Listen address of the cache',
  'cache.port': 'Port of the cache',
  'cache.dir': 'Image folder',
  'cache.max_bytes': 'Space for images',
  'cache.token': 'Token of the cache',
} as const satisfies Readonly<Record<SettingName, string>>

export const SETTING_TITLES: ReadonlyMap<string, string> = new Map(Object.entries(TITLES))

interface Topic {
  readonly title: string
  readonly names: readonly SettingName[]
}

interface Group {
  /** "Configuration page" of the specification names the first three. */
  readonly title: string
  readonly id: string
  readonly topics: readonly Topic[]
}

export const SETTING_GROUPS: readonly Group[] = [
  {
    title: 'Identity',
    id: 'identity',
    topics: [
      {
        title: 'Logging in',
        names: ['admin.password', 'admin.password_hash', 'server.session_secret'],
      },
      {
        title: 'Times, logs and monitoring',
        names: ['display.timezone', 'log.level', 'metrics.open'],
      },
    ],
  },
  {
    title: 'Network',
    id: 'network',
    topics: [
      {
        title: 'Where the server listens',
        names: ['server.host', 'server.port', 'server.tls_cert', 'server.tls_key'],
      },
      {
        title: 'Behind a proxy or a name',
        names: ['server.public_url', 'server.allowed_hosts', 'server.trusted_proxies'],
      },
      {
        title: 'Images and releases',
        names: [
          'withcache.url',
          'withcache.token',
          'releases.base_url',
          'boot.release_repo',
          'boot.release_tag',
        ],
      },
      {
        title: 'Flashing',
        names: [
          'pxe.max_flashes',
          'pxe.run_patience',
          'pxe.flash_silence',
          'pxe.boot_disk_once_after_flash',
        ],
      },
      {
        title: 'Network boot and discovery',
        names: [
          'pxe.tokens',
          'pxe.tokens_hours',
          'pxe.loop_limit',
          'pxe.inventory_refresh',
          'pxe.discovery_per_minute',
          'pxe.discovery_rows',
          'netboot.tftp_probe_host',
        ],
      },
    ],
  },
  {
    title: 'Storage',
    id: 'storage',
    topics: [
      { title: 'Folders', names: ['paths.state_dir', 'paths.boot_dir', 'paths.backup_dir'] },
      {
        title: 'Backups',
        names: [
          'backup.enabled',
          'backup.cadence',
          'backup.retention',
          'backup.driver',
          'backup.driver_options',
        ],
      },
      {
        title: 'What is kept, and for how long',
        names: [
          'retention.events',
          'retention.event_days',
          'retention.runs',
          'retention.run_days',
          'retention.boot_sets',
          'retention.bak_files',
        ],
      },
      { title: 'Limits', names: ['retention.warn_free_bytes', 'tuning.max_upload_bytes'] },
      {
        title: 'Image cache on this server',
        names: ['cache.host', 'cache.port', 'cache.dir', 'cache.max_bytes', 'cache.token'],
      },
    ],
  },
]
