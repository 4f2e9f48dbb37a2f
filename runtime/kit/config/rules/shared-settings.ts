/** Settings that the machine server and the cache service share, read from the same files. */
import {
  baseUrl,
  bytes,
  host,
  longDuration,
  passwordHash,
  path,
  port,
  secretText,
} from './setting-kinds.ts'
import { setting } from './setting.ts'

export const ADMIN_SETTINGS = {
  password: setting(
    secretText,
    '',
    'The administrator password in plain text; empty: the one that was set on the account page or with `flasher-web password`.',
    { secret: true },
  ),
  password_hash: setting(
    passwordHash,
    '',
    'A hash of the password, instead of the password itself: `$argon2id$…` or `$scrypt$…`.',
    {
      secret: true,
    },
  ),
}

export const STATE_DIR = setting(
  path,
  '',
  'Where the server keeps its database, its keys, and everything without a folder of its own.',
  {
    restart: true,
    fallbackWords:
      '`/var/lib/flasher` for root, else `$XDG_STATE_HOME/flasher` (`~/.local/state/flasher`)',
  },
)

export const SESSION_SECRET = setting(
  secretText,
  '',
  'Signs sessions, instead of the key in `<paths.state_dir>/session-secret`.',
  { secret: true, restart: true },
)

export const PUBLIC_URL = setting(
  baseUrl,
  '',
  'The address of this server in boot scripts, instead of the `Host` header of the request. With a path, boot files are below it; pages are not.',
)

/** Of `flasher-cache`. */
export const CACHE_SETTINGS = {
  host: setting(host, '0.0.0.0', 'The address on which `flasher-cache` listens.', {
    restart: true,
  }),
  port: setting(port, 8081, 'The port on which `flasher-cache` listens.', { restart: true }),
  dir: setting(path, '', 'Where `flasher-cache` keeps images.', {
    restart: true,
    fallbackWords: '`<paths.state_dir>/cache`',
  }),
  max_bytes: setting(
    bytes,
    0,
    'How much `flasher-cache` may keep before it removes the least recently used images; 0: as much as fits on the disk.',
  ),
  upstream_check_interval: setting(
    longDuration,
    Infinity,
    'How often `flasher-cache` looks whether the sources of its images moved on; it says so, and downloads nothing.',
  ),
  token: setting(
    secretText,
    '',
    'A bearer token with which programs may change the images of `flasher-cache`, beside the one that it generates.',
    { secret: true },
  ),
}
