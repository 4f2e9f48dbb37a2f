/** Current line: what pages call each setting, and the groups in which the settings page lists them. */
import type { SETTINGS } from '../../rules/settings.ts'
import { PAGES } from '../../../texts/texts.ts'

const t = PAGES.settings

type Table = typeof SETTINGS
/** `server.port` */
type SettingName = {
  [Section in keyof Table & string]: `${Section}.${keyof Table[Section] & string}`
}[keyof Table & string]

const TITLES = t.titles satisfies Readonly<Record<SettingName, string>>

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
    title: t.groups.identity,
    id: 'identity',
    topics: [
      {
        title: t.topics.login,
        names: ['admin.password', 'admin.password_hash', 'server.session_secret'],
      },
      {
        title: t.topics.monitoring,
        names: ['display.timezone', 'log.level', 'metrics.open'],
      },
    ],
  },
  {
    title: t.groups.network,
    id: 'network',
    topics: [
      {
        title: t.topics.listening,
        names: ['server.host', 'server.port', 'server.tls_cert', 'server.tls_key'],
      },
      {
        title: t.topics.proxy,
        names: ['server.public_url', 'server.allowed_hosts', 'server.trusted_proxies'],
      },
      {
        title: t.topics.upstream,
        names: [
          'withcache.url',
          'withcache.token',
          'releases.base_url',
          'boot.release_repo',
          'boot.release_tag',
          'releases.public_keys',
        ],
      },
      {
        title: t.topics.flashing,
        names: [
          'flash.delta',
          'pxe.max_flashes',
          'pxe.run_patience',
          'pxe.flash_silence',
          'pxe.boot_disk_once_after_flash',
        ],
      },
      {
        title: t.topics.boot,
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
    title: t.groups.storage,
    id: 'storage',
    topics: [
      { title: t.topics.folders, names: ['paths.state_dir', 'paths.boot_dir', 'paths.backup_dir'] },
      {
        title: t.topics.backups,
        names: [
          'backup.enabled',
          'backup.cadence',
          'backup.retention',
          'backup.driver',
          'backup.driver_options',
        ],
      },
      {
        title: t.topics.retention,
        names: [
          'retention.events',
          'retention.event_days',
          'retention.runs',
          'retention.run_days',
          'retention.boot_sets',
          'retention.bak_files',
        ],
      },
      { title: t.topics.limits, names: ['retention.warn_free_bytes', 'tuning.max_upload_bytes'] },
      {
        title: t.topics.cache,
        names: [
          'cache.host',
          'cache.port',
          'cache.dir',
          'cache.max_bytes',
          'cache.upstream_check_interval',
          'cache.token',
        ],
      },
    ],
  },
]
