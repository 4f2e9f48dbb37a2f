/** Settings that the machine server and the cache service share, read from the same files. */
import { baseUrl, bytes, host, passwordHash, path, port, secretText } from './setting-kinds.ts'
import { setting } from './setting.ts'

export const ADMIN_SETTINGS = {
  password: setting(
    secretText,
    '',
    'The administrator password in clear; empty: the one whose hash the state directory holds.',
    { secret: true },
  ),
  password_hash: setting(passwordHash, '', 'A hash of it instead: `$argon2id$…` or `$scrypt$…`.', {
    secret: true,
  }),
}

export const STATE_DIR = setting(
  path,
  '',
  'Where the server keeps its state: database, keys, and what has no place of its own.',
  {
    restart: true,
    fallbackWords:
      '`/var/lib/flasher` for root, else `$XDG_STATE_HOME/flasher` (`~/.local/state/flasher`)',
  },
)

export const SESSION_SECRET = setting(
  secretText,
  '',
  'Signs sessions instead of the key in `<paths.state_dir>/session-secret`.',
  { secret: true, restart: true },
)

export const PUBLIC_URL = setting(
  baseUrl,
  '',
  'What boot scripts name as this server instead of the `Host` header of the request.',
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
    'How much `flasher-cache` may keep before it drops what was not used for longest; 0: as much as fits on the disk.',
  ),
  token: setting(
    secretText,
    '',
    'With this as bearer token, programs may change what `flasher-cache` holds; it makes one of its own, too.',
    { secret: true },
  ),
}
