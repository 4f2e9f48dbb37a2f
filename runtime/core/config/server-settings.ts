/** Settings that the machine servers of both release lines have, in the same words. */
import * as kinds from './setting-kinds.ts'
import { setting } from './setting.ts'
import { PUBLIC_URL } from './shared-settings.ts'

const { wholeNumber, toggle, choice, path, duration, baseUrl } = kinds
const restart = true

/** Of section `[server]`: as what callers reach it. */
export const REACH_SETTINGS = {
  public_url: PUBLIC_URL,
  allowed_hosts: setting(
    kinds.hosts,
    [],
    'Names and addresses that requests may be sent to; empty: any that is well formed.',
  ),
  trusted_proxies: setting(
    kinds.ranges,
    [],
    'Proxies whose `Forwarded` and `X-Forwarded-*` headers are believed.',
  ),
  tls_cert: setting(path, '', 'A PEM certificate (with its chain): the server then speaks HTTPS.', {
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
    release_tag: setting(kinds.tag, 'latest', 'The release that it fetches.'),
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
  'How long a flash may not be heard of before it is marked as stalled.',
)

export const DISCOVERY_SETTINGS = {
  discovery_per_minute: setting(
    wholeNumber(0, 1_000_000),
    600,
    'How many unknown machines are taken up in a minute; others boot their own disk.',
  ),
  discovery_rows: setting(
    wholeNumber(0, 1_000_000),
    20_000,
    'How many discovered machines may lie unassigned before no more are taken up.',
  ),
}

/** Of section `[retention]`. */
export const HISTORY_SETTINGS = {
  events: setting(wholeNumber(100, 10_000_000), 100_000, 'How many events are kept.'),
  event_days: setting(wholeNumber(1, 36_500), 180, 'For how many days they are kept.'),
  runs: setting(wholeNumber(10, 1_000_000), 10_000, 'How many flash runs are kept.'),
  run_days: setting(wholeNumber(1, 36_500), 730, 'For how many days they are kept.'),
  bak_files: setting(wholeNumber(1, 1000), 5, 'How many databases of earlier releases are kept.'),
}

export const WARN_FREE_BYTES = setting(
  kinds.bytes,
  2 ** 30,
  'Below this much free space in the state directory the server warns.',
)

/** Sections `[display]`, `[metrics]` and `[log]`. */
export const OUTPUT_SETTINGS = {
  display: {
    timezone: setting(kinds.timeZone, 'UTC', 'The time zone of the times on pages.', {
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
      'What the server logs at least.',
    ),
  },
} as const
