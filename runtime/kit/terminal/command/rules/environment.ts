/** Environment variables that are no settings; help, manuals and the reference are generated from these tables. */
import { DEFAULT_IMAGE_ROOT } from '#appliance/disk-images.ts'
import type { Entry } from './command.ts'

/** How images and catalogs are fetched, by every program. */
export const SOURCE_ENVIRONMENT: readonly Entry[] = [
  [
    'http_proxy, https_proxy, no_proxy',
    'proxies for downloads; no_proxy lists names (and all below them), addresses and networks',
  ],
  ['FLASHER_CA_FILE', 'additional certificate authorities to trust'],
  [
    'FLASHER_REGISTRY_HOST, FLASHER_REGISTRY_USER, FLASHER_REGISTRY_PASSWORD',
    'user and password for one registry; no other registry gets them',
  ],
  ['FLASHER_REGISTRY_HTTP', 'registries that speak plain http, separated by commas'],
  [
    'AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN',
    'keys for s3:// images; without them buckets are read anonymously',
  ],
  [
    'AWS_ENDPOINT_URL_S3, AWS_REGION',
    'the service that holds the buckets and its region (default: AWS in us-east-1)',
  ],
]

const DEBUG_ENVIRONMENT: Entry = ['FLASHER_DEBUG', 'when 1, unexpected errors show their stack']

export const COMMAND_ENVIRONMENT: readonly Entry[] = [
  [
    'FLASHER_IMAGE_ROOT',
    `the image folder, unless --image-root is given (default: ${DEFAULT_IMAGE_ROOT})`,
  ],
  ['FLASHER_UPLOAD_TOKEN', 'the token of "capture" for an upload, unless --token is given'],
  DEBUG_ENVIRONMENT,
  ...SOURCE_ENVIRONMENT,
  ['NO_COLOR, TERM, LC_ALL', 'control colours and line drawing'],
]

export const WIZARD_ENVIRONMENT: readonly Entry[] = [
  ['FLASHER_DEFAULT_CATALOG', 'the catalog that the wizard offers as the default'],
  [
    'FLASHER_REGISTER_UEFI_BOOT',
    'when 1, the firmware boots a flashed disk once, on the next boot',
  ],
  ['FLASHER_PXE_TOKEN', 'token that proves to the machine server that it booted this machine'],
  ['FLASHER_OFFER_LOOP', 'loop devices to offer as disks, for trying it out; 1 for all'],
  [
    'FLASHER_RELEASES_BASE_URL',
    'where the default catalog is, unless FLASHER_DEFAULT_CATALOG names one',
  ],
]

/** What the live system sets for the wizard. */
export const LIVE_ENVIRONMENT: readonly Entry[] = [
  ['FLASHER_LIVE', '1 in the live system: the machine may be restarted'],
  ['FLASHER_LIVE_SERVER', 'the server that booted this machine'],
  ['FLASHER_LIVE_SERVERS', 'the other servers of the site, with commas between them'],
  ['FLASHER_LIVE_MAC', 'the MAC address by which that server knows this machine'],
]

/** What the server programs read besides their settings. */
export const SERVER_ENVIRONMENT: readonly Entry[] = [
  ['FLASHER_CONFIG_FILE, FLASHER_CONFIG_DIR', 'a file or folder to read instead of the usual ones'],
  DEBUG_ENVIRONMENT,
  ['FLASHER_LINE', 'the release line to serve: current (the default) or earlier'],
]

/** The variables of `flasher-web flash`, which asks a server that runs. */
export const ORDER_ENVIRONMENT: readonly Entry[] = [['FLASHER_TOKEN', 'the API token of "flash"']]
