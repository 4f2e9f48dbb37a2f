/** Settings that the machine servers of both release lines have, in the same words. */
import * as kinds from './setting-kinds.ts'
import { setting, type Setting, type SettingsOf } from './setting.ts'
import { PUBLIC_URL, type SESSION_SECRET } from './shared-settings.ts'

const { wholeNumber, toggle, choice, path, duration, baseUrl } = kinds
const restart = true

/** Of section `[server]`: as what callers reach it. */
export const REACH_SETTINGS = {
  public_url: PUBLIC_URL,
  allowed_hosts: setting(
    kinds.hosts,
    [],
    'The host names and addresses under which the server answers; empty: any valid one.',
  ),
  trusted_proxies: setting(
    kinds.ranges,
    [],
    'Proxies whose `Forwarded` and `X-Forwarded-*` headers are trusted.',
  ),
  tls_cert: setting(path, '', 'A PEM certificate with its chain; with it, the server uses HTTPS.', {
    restart,
  }),
  tls_key: setting(path, '', 'The PEM key of that certificate.', { restart }),
}

/** Sections `[boot]` and `[releases]`. */
export const RELEASE_SETTINGS = {
  boot: {
    release_repo: setting(
      kinds.repository,
      '',
      'The repository, `owner/name`, whose releases the Netboot page fetches.',
    ),
    release_tag: setting(kinds.tag, 'latest', 'The release to fetch: a tag, or `latest`.'),
  },
  releases: {
    base_url: setting(baseUrl, '', 'The site that hosts those releases.'),
    public_keys: setting(
      kinds.publicKeys,
      [],
      'SSH keys of which one must have signed a release before it is fetched; empty: none need have.',
    ),
  },
}

/** Of section `[pxe]`. */
export const RUN_PATIENCE = setting(
  duration,
  30,
  'How long a flash may go without a report before it is marked as stalled.',
)

export const DISCOVERY_SETTINGS = {
  discovery_per_minute: setting(
    wholeNumber(0, 1_000_000),
    600,
    'How many unknown machines are recorded per minute; others boot their own disk.',
  ),
  discovery_rows: setting(
    wholeNumber(0, 1_000_000),
    20_000,
    'How many machines may be unassigned before no new ones are recorded.',
  ),
}

/** Of section `[retention]`. */
export const HISTORY_SETTINGS = {
  events: setting(wholeNumber(100, 10_000_000), 100_000, 'The number of events to keep.'),
  event_days: setting(wholeNumber(1, 36_500), 180, 'The number of days to keep them.'),
  runs: setting(wholeNumber(10, 1_000_000), 10_000, 'The number of flash runs to keep.'),
  run_days: setting(wholeNumber(1, 36_500), 730, 'The number of days to keep them.'),
  bak_files: setting(
    wholeNumber(1, 1000),
    5,
    'The number of databases of earlier releases to keep.',
  ),
}

export const WARN_FREE_BYTES = setting(
  kinds.bytes,
  2 ** 30,
  'The server warns when the state directory has less free space than this.',
)

/** Sections `[display]`, `[metrics]` and `[log]`. */
export const OUTPUT_SETTINGS = {
  display: {
    timezone: setting(kinds.timeZone, 'UTC', 'The time zone in which pages show times.', {
      env: 'FLASHER_DISPLAY_TZ',
    }),
  },
  metrics: {
    open: setting(toggle, false, 'Whether `/metrics` answers without a session or token.'),
  },
  log: {
    level: setting(
      choice(['debug', 'info', 'warn', 'error']),
      'info',
      'The lowest level that the server logs.',
    ),
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
