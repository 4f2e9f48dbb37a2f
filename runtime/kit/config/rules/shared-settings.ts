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
    topic: null,
    help: 'The administrator password in plain text. Leave empty to use the one set on the account page or with `flasher-web password`.',
    kind: kinds.secretText,
    fallback: '',
    kept: true,
  }),
  password_hash: both({
    title: 'Hash of the administrator password',
    topic: null,
    help: 'A hash instead of the password: `$argon2id$…` or `$scrypt$…`.',
    kind: kinds.passwordHash,
    fallback: '',
    kept: true,
  }),
}

export const STATE_DIR = both({
  title: 'State folder',
  topic: 'folders',
  help: 'The database, the keys, and everything without a folder of its own.',
  kind: path('/var/lib/flasher'),
  fallback: '',
  restart: true,
  fallbackWords:
    '`/var/lib/flasher` for root, else `$XDG_STATE_HOME/flasher` (`~/.local/state/flasher`)',
})

export const SESSION_SECRET = both({
  title: 'Session key',
  topic: 'login',
  help: 'Signs sessions instead of the key in `<paths.state_dir>/session-secret`.',
  kind: kinds.secretText,
  fallback: '',
  restart: true,
  kept: true,
})

export const SERVER_PORT = both({
  title: 'Port',
  topic: 'listening',
  help: 'The port to listen on. Network-boot firmware tries 8080, then 80.',
  kind: kinds.port,
  fallback: 8080,
  restart: true,
})

export const PUBLIC_URL = both({
  title: 'Public address',
  topic: 'proxy',
  front: 'addresses',
  help: 'Where machines reach this server. Leave empty to use the address of their request. With a path, boot files are below it; pages are not.',
  kind: baseUrl('https://flash.example.org'),
  fallback: '',
})

/** The settings of section `[s3]`: what opens the buckets in which images lie. */
export const S3_SETTINGS = {
  endpoint: both({
    title: 'Address of the S3 service',
    topic: 'buckets',
    help: 'The S3 service of `s3://` images. Leave empty to use `AWS_ENDPOINT_URL_S3`, or AWS.',
    kind: baseUrl('https://s3.example.org'),
    fallback: '',
  }),
  region: both({
    title: 'Region of the buckets',
    topic: 'buckets',
    help: 'The region of the buckets. Leave empty to use `AWS_REGION`, or `us-east-1`.',
    kind: kinds.region,
    fallback: '',
  }),
  access_key: both({
    title: 'Access key',
    topic: 'buckets',
    help: 'The key that may read the images. Leave empty to use `AWS_ACCESS_KEY_ID`, or anonymous access.',
    kind: kinds.secretText,
    fallback: '',
  }),
  secret_key: both({
    title: 'Secret key',
    topic: 'buckets',
    help: 'The secret of the access key.',
    kind: kinds.secretText,
    fallback: '',
  }),
  secret_key_file: both({
    title: 'File with the secret key',
    topic: 'buckets',
    help: 'A file with the secret key on its first line, instead of `s3.secret_key`.',
    kind: path('/etc/flasher/s3-secret-key'),
    fallback: '',
  }),
  lifetime: ofServer({
    title: 'Lifetime of signed addresses',
    topic: 'buckets',
    help: 'How long a signed address for an image is valid. Slower machines get a new one.',
    kind: kinds.signedSpan,
    fallback: 21_600,
  }),
}

export const SOURCE_SETTINGS = {
  caches: ofServer({
    title: 'Caches near the machines',
    topic: 'upstream',
    help: 'Caches near the machines with the same images, one a line. Machines ask them first. Add the networks and labels that a cache serves, separated by `;`. Without any, it serves all machines.',
    kind: siteCaches,
    fallback: [],
  }),
  origins: ofServer({
    title: 'Registries and buckets as sources',
    topic: 'upstream',
    help: 'Machines may read an image from its registry or bucket, after the caches near them and before the cache service. The registry must allow anonymous access. Buckets use signed addresses.',
    kind: toggle,
    fallback: false,
  }),
}

/** The settings of section `[cache]`, which `flasher-cache` reads. */
export const CACHE_SETTINGS = {
  host: ofCache({
    title: 'Listen address of the cache',
    topic: 'cache',
    help: 'The address that `flasher-cache` listens on.',
    kind: kinds.host,
    fallback: '0.0.0.0',
    restart: true,
  }),
  port: ofCache({
    title: 'Port of the cache',
    topic: 'cache',
    help: 'The port that `flasher-cache` listens on.',
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
    help: '`flasher-cache` removes the least recently used images to stay below this size. 0: the whole disk.',
    kind: kinds.bytesOr({ 0: 'As much as fits on the disk' }),
    fallback: 0,
  }),
  upstream_check_interval: ofCache({
    title: 'Check the sources of images every',
    topic: 'cache',
    help: 'How often `flasher-cache` checks the sources of its images for changes. It reports them and downloads nothing.',
    kind: kinds.longDuration,
    fallback: Infinity,
  }),
  token: ofCache({
    title: 'Token of the cache',
    topic: 'cache',
    help: 'A bearer token that may change the images of `flasher-cache`, besides the generated one.',
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
    help: 'The host names and addresses that the server answers to. Leave empty to allow all.',
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
    help: 'How long an idle connection stays open. Set more than the idle timeout of your proxy or load balancer: often 60 seconds, sometimes 600 or more.',
    kind: wholeNumber(5, 86_400),
    fallback: 75,
    restart: true,
  }),
  tls_cert: ofServer({
    title: 'HTTPS certificate',
    topic: 'listening',
    front: 'addresses',
    help: 'A PEM certificate with its chain. It turns on HTTPS.',
    kind: path('/etc/flasher/tls.crt'),
    fallback: '',
    restart: true,
  }),
  tls_key: ofServer({
    title: 'HTTPS key',
    topic: 'listening',
    front: 'addresses',
    help: 'The PEM key of the certificate.',
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
      help: 'The repository of the live systems, `owner/name`.',
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
      help: 'The site that hosts the releases.',
      kind: baseUrl('https://github.com'),
      fallback: '',
    }),
    public_keys: ofServer({
      title: 'Keys that sign releases',
      topic: 'upstream',
      help: 'A release must be signed by one of these SSH keys. Leave empty to accept unsigned releases.',
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
    help: 'How many unknown machines are recorded per minute. Others boot their own disk.',
    kind: wholeNumber(0, 1_000_000),
    fallback: 600,
  }),
  discovery_rows: ofServer({
    title: 'Most unassigned machines',
    topic: 'boot',
    help: 'New machines are not recorded while this many are unassigned.',
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
    help: 'The number of days to keep events.',
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
    help: 'The number of days to keep flash runs.',
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
  help: 'The server warns when the state folder has less free space than this.',
  kind: kinds.bytes,
  fallback: 2 ** 30,
})

export const OUTPUT_SETTINGS = {
  display: {
    timezone: ofServer({
      title: 'Time zone',
      topic: 'monitoring',
      front: 'addresses',
      help: 'The time zone of times and days on pages. With UTC, exact times use the zone of the browser.',
      kind: kinds.timeZone,
      fallback: 'UTC',
      env: 'FLASHER_DISPLAY_TZ',
    }),
  },
  metrics: {
    open: ofServer({
      title: 'Metrics without login',
      topic: 'monitoring',
      help: '`/metrics` answers without a session or token.',
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
