/** Settings that several programs have, in the same words: the machine servers of both lines, and the cache service. */
import * as kinds from './setting-kinds.ts'
import { siteCaches } from './setting-kinds.ts'
import { settingOf, type Setting, type SettingsOf } from './setting.ts'

const { wholeNumber, toggle, choice, path, duration, baseUrl } = kinds
const both = settingOf('both')
const ofServer = settingOf('flasher-web')
const ofCache = settingOf('flasher-cache')

export const ADMIN_SETTINGS = {
  password: both({
    title: 'Administrator password',
    topic: 'login',
    help: 'The administrator password in plain text. Leave empty to use the one set on the account page or with `flasher-web password`.',
    kind: kinds.secretText,
    fallback: '',
    kept: true,
  }),
  password_hash: both({
    title: 'Hash of the administrator password',
    topic: 'login',
    help: 'A hash of the password, instead of the password itself: `$argon2id$…` or `$scrypt$…`.',
    kind: kinds.passwordHash,
    fallback: '',
    kept: true,
  }),
}

export const STATE_DIR = both({
  title: 'State folder',
  topic: 'folders',
  help: 'Where the server keeps its database, its keys, and everything without a folder of its own.',
  kind: path('/var/lib/flasher'),
  fallback: '',
  restart: true,
  fallbackWords:
    '`/var/lib/flasher` for root, else `$XDG_STATE_HOME/flasher` (`~/.local/state/flasher`)',
})

export const SESSION_SECRET = both({
  title: 'Key for sessions',
  topic: 'login',
  help: 'Signs sessions, instead of the key in `<paths.state_dir>/session-secret`.',
  kind: kinds.secretText,
  fallback: '',
  restart: true,
  kept: true,
})

export const PUBLIC_URL = both({
  title: 'Public address',
  topic: 'proxy',
  help: 'The address of this server in boot scripts, instead of the `Host` header of the request. With a path, boot files are below it; pages are not.',
  kind: baseUrl('https://flash.example.org'),
  fallback: '',
})

/** The settings of section `[s3]`: what opens the buckets in which images lie. */
export const S3_SETTINGS = {
  endpoint: both({
    title: 'Address of the S3 service',
    topic: 'buckets',
    help: 'The service that holds the buckets of `s3://` images; empty: `AWS_ENDPOINT_URL_S3`, else AWS itself.',
    kind: baseUrl('https://s3.example.org'),
    fallback: '',
  }),
  region: both({
    title: 'Region of the buckets',
    topic: 'buckets',
    help: 'The region of the buckets; empty: `AWS_REGION`, else `us-east-1`.',
    kind: kinds.region,
    fallback: '',
  }),
  access_key: both({
    title: 'Access key',
    topic: 'buckets',
    help: 'The access key that may read the images; empty: `AWS_ACCESS_KEY_ID`, else buckets are read anonymously.',
    kind: kinds.secretText,
    fallback: '',
  }),
  secret_key: both({
    title: 'Secret key',
    topic: 'buckets',
    help: 'The secret key of that access key.',
    kind: kinds.secretText,
    fallback: '',
  }),
  secret_key_file: both({
    title: 'File with the secret key',
    topic: 'buckets',
    help: 'The file whose first line is the secret key, instead of `s3.secret_key`.',
    kind: path('/etc/flasher/s3-secret-key'),
    fallback: '',
  }),
  lifetime: ofServer({
    title: 'Lifetime of signed addresses',
    topic: 'buckets',
    help: 'How long an address is valid with which a machine reads an image from a bucket; a machine that takes longer gets a new one.',
    kind: kinds.signedSpan,
    fallback: 21_600,
  }),
}

export const SOURCE_SETTINGS = {
  caches: ofServer({
    title: 'Caches near the machines',
    topic: 'upstream',
    help: 'Further caches with the same images, one a line, each with the networks and labels of the machines that it serves, separated by `;` (none: all machines). Machines ask them first, and the cache service last.',
    kind: siteCaches,
    fallback: [],
  }),
  origins: ofServer({
    title: 'Registries and buckets as sources',
    topic: 'upstream',
    help: 'Whether machines may read an image from the registry or bucket that it comes from, after the caches near them and before the cache service: from a registry that answers everybody, and from a bucket by signed addresses.',
    kind: toggle,
    fallback: false,
  }),
}

/** The settings of section `[cache]`, which `flasher-cache` reads. */
export const CACHE_SETTINGS = {
  host: ofCache({
    title: 'Listen address of the cache',
    topic: 'cache',
    help: 'The address on which `flasher-cache` listens.',
    kind: kinds.host,
    fallback: '0.0.0.0',
    restart: true,
  }),
  port: ofCache({
    title: 'Port of the cache',
    topic: 'cache',
    help: 'The port on which `flasher-cache` listens.',
    kind: kinds.port,
    fallback: 8081,
    restart: true,
  }),
  dir: ofCache({
    title: 'Image folder',
    topic: 'cache',
    help: 'Where `flasher-cache` keeps images.',
    kind: path('/srv/flasher/images'),
    fallback: '',
    restart: true,
    fallbackWords: '`<paths.state_dir>/cache`',
  }),
  max_bytes: ofCache({
    title: 'Space for images',
    topic: 'cache',
    help: 'How much `flasher-cache` may keep before it removes the least recently used images; 0: as much as fits on the disk.',
    kind: kinds.bytesOr({ 0: 'As much as fits on the disk' }),
    fallback: 0,
  }),
  upstream_check_interval: ofCache({
    title: 'Interval at which sources are looked at again',
    topic: 'cache',
    help: 'How often `flasher-cache` looks whether the sources of its images moved on; it says so, and downloads nothing.',
    kind: kinds.longDuration,
    fallback: Infinity,
  }),
  token: ofCache({
    title: 'Token of the cache',
    topic: 'cache',
    help: 'A bearer token with which programs may change the images of `flasher-cache`, beside the one that it generates.',
    kind: kinds.secretText,
    fallback: '',
  }),
}

/** The settings of section `[server]` that say under which names and through which proxies it is reached. */
export const REACH_SETTINGS = {
  public_url: PUBLIC_URL,
  allowed_hosts: ofServer({
    title: 'Allowed host names',
    topic: 'proxy',
    help: 'The host names and addresses under which the server answers; empty: any valid one.',
    kind: kinds.hosts,
    fallback: [],
  }),
  trusted_proxies: ofServer({
    title: 'Trusted proxies',
    topic: 'proxy',
    help: 'Proxies whose `Forwarded` and `X-Forwarded-*` headers are trusted.',
    kind: kinds.ranges,
    fallback: [],
  }),
  keep_alive_seconds: ofServer({
    title: 'Idle connections (seconds)',
    topic: 'proxy',
    help: 'How long an idle connection stays open. Proxies and load balancers must close theirs first: set more than their idle timeout, often 60 seconds, for some load balancers 600 or more.',
    kind: wholeNumber(5, 86_400),
    fallback: 75,
    restart: true,
  }),
  tls_cert: ofServer({
    title: 'HTTPS certificate',
    topic: 'listening',
    help: 'A PEM certificate with its chain; with it, the server uses HTTPS.',
    kind: path('/etc/flasher/tls.crt'),
    fallback: '',
    restart: true,
  }),
  tls_key: ofServer({
    title: 'HTTPS key',
    topic: 'listening',
    help: 'The PEM key of that certificate.',
    kind: path('/etc/flasher/tls.key'),
    fallback: '',
    restart: true,
  }),
}

export const RELEASE_SETTINGS = {
  boot: {
    release_repo: ofServer({
      title: 'Release repository',
      topic: 'upstream',
      help: 'The repository, `owner/name`, from which live systems are fetched.',
      kind: kinds.repository,
      fallback: '',
      card: 'netboot-release',
    }),
    release_tag: ofServer({
      title: 'Release tag',
      topic: 'upstream',
      help: 'The release to fetch: a tag, or `latest`.',
      kind: kinds.tag,
      fallback: 'latest',
      card: 'netboot-release',
    }),
  },
  releases: {
    base_url: ofServer({
      title: 'Release site',
      topic: 'upstream',
      help: 'The site that hosts those releases.',
      kind: baseUrl('https://github.com'),
      fallback: '',
    }),
    public_keys: ofServer({
      title: 'Keys that sign releases',
      topic: 'upstream',
      help: 'SSH keys of which one must have signed a release before it is fetched; empty: none need have.',
      kind: kinds.publicKeys,
      fallback: [],
    }),
  },
}

export const RUN_PATIENCE = ofServer({
  title: 'Mark a flash as stalled after',
  topic: 'flashing',
  help: 'How long a flash may go without a report before it is marked as stalled.',
  kind: duration,
  fallback: 30,
})

export const DISCOVERY_SETTINGS = {
  discovery_per_minute: ofServer({
    title: 'New machines per minute',
    topic: 'boot',
    help: 'How many unknown machines are recorded per minute; others boot their own disk.',
    kind: wholeNumber(0, 1_000_000),
    fallback: 600,
  }),
  discovery_rows: ofServer({
    title: 'Unassigned machines at most',
    topic: 'boot',
    help: 'How many machines may be unassigned before no new ones are recorded.',
    kind: wholeNumber(0, 1_000_000),
    fallback: 20_000,
  }),
}

export const HISTORY_SETTINGS = {
  events: ofServer({
    title: 'Events to keep',
    topic: 'retention',
    help: 'The number of events to keep.',
    kind: wholeNumber(100, 10_000_000),
    fallback: 100_000,
  }),
  event_days: ofServer({
    title: 'Keep events for (days)',
    topic: 'retention',
    help: 'The number of days to keep them.',
    kind: wholeNumber(1, 36_500),
    fallback: 180,
  }),
  runs: ofServer({
    title: 'Flash runs to keep',
    topic: 'retention',
    help: 'The number of flash runs to keep.',
    kind: wholeNumber(10, 1_000_000),
    fallback: 10_000,
  }),
  run_days: ofServer({
    title: 'Keep flash runs for (days)',
    topic: 'retention',
    help: 'The number of days to keep them.',
    kind: wholeNumber(1, 36_500),
    fallback: 730,
  }),
  bak_files: ofServer({
    title: 'Databases of earlier releases to keep',
    topic: 'retention',
    help: 'The number of databases of earlier releases to keep.',
    kind: wholeNumber(1, 1000),
    fallback: 5,
  }),
}

export const WARN_FREE_BYTES = ofServer({
  title: 'Warn below this much free space',
  topic: 'limits',
  help: 'The server warns when the state directory has less free space than this.',
  kind: kinds.bytes,
  fallback: 2 ** 30,
})

export const OUTPUT_SETTINGS = {
  display: {
    timezone: ofServer({
      title: 'Time zone',
      topic: 'monitoring',
      help: 'The time zone in which pages show times and read days. With UTC, exact times are shown in the zone of the browser.',
      kind: kinds.timeZone,
      fallback: 'UTC',
      env: 'FLASHER_DISPLAY_TZ',
    }),
  },
  metrics: {
    open: ofServer({
      title: 'Metrics without login',
      topic: 'monitoring',
      help: 'Whether `/metrics` answers without a session or token.',
      kind: toggle,
      fallback: false,
    }),
  },
  log: {
    level: ofServer({
      title: 'Log level',
      topic: 'monitoring',
      help: 'The lowest level that the server logs.',
      kind: choice({ debug: 'Debug', info: 'Information', warn: 'Warnings', error: 'Errors' }),
      fallback: 'info',
    }),
  },
} as const

/** What programs of both lines read, whatever else a line has. */
export type ServerSettings = SettingsOf<
  typeof RELEASE_SETTINGS &
    typeof OUTPUT_SETTINGS & {
      readonly server: typeof REACH_SETTINGS & { readonly session_secret: typeof SESSION_SECRET }
      readonly pxe: typeof DISCOVERY_SETTINGS & { readonly run_patience: typeof RUN_PATIENCE }
      readonly retention: typeof HISTORY_SETTINGS & {
        readonly warn_free_bytes: typeof WARN_FREE_BYTES
      }
      readonly tuning: { readonly max_upload_bytes: Setting<number> }
    }
>
