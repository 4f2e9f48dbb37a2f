/** Secret keys that the server generates and keeps in its state directory, readable only by itself. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'

import { Fault, renderError, systemCodeOf } from '#kit/foundation/fault.ts'
import { linkName, removeName, replaceFile } from '#kit/host/folders.ts'

export interface Secret {
  /** HMAC-SHA256 of a text, base64url. */
  sign(text: string): string
  /** Compares in constant time. */
  verify(text: string, signature: string): boolean
}

interface SecretOptions {
  /** `<state_dir>/session-secret`. */
  readonly path: string
  /** From the configuration: used instead of the file; empty: none. */
  readonly configured: string
}

/** Anything shorter is no key, but a slip. */
const FEWEST_CHARACTERS = 16

/**
 * Makes the file (mode 0600) where there is none. A file that is replaced or deleted later, as
 * `flasher-web password` does, counts at once: what the old key signed is void then. The look at
 * the file that this takes costs microseconds. Rejects with a Fault where the key is too short or
 * cannot be read.
 */
export async function createSecret({ path, configured }: SecretOptions): Promise<Secret> {
  if (configured !== '') return createSigner(() => checkKey(configured, 'server.session_secret'))
  await makeKey(path)
  return createSigner(watchKey(path))
}

/** Makes a key for one purpose out of the master's: what one signs, the other does not know. */
export const deriveSecret = (master: Secret, purpose: string): Secret =>
  createSigner(() => master.sign(`key of ${purpose}`))

/** Ends whatever it has signed: sessions and tokens of boots. */
export async function replaceSecret(path: string): Promise<void> {
  await replaceFile(path, freshKey(), 0o600)
}

const freshKey = () => `${randomBytes(32).toString('base64url')}\n`

/** Two that start at once end up with the same key: the file appears whole, once. */
async function makeKey(path: string): Promise<void> {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return
  const own = `${path}.${randomBytes(6).toString('hex')}.new`
  await replaceFile(own, freshKey(), 0o600)
  try {
    await linkName(own, path)
  } catch (thrown) {
    if (systemCodeOf(thrown) !== 'EEXIST') throw thrown
  } finally {
    await removeName(own)
  }
}

function watchKey(path: string): () => string {
  let key = readKey(path)
  let seen = identify(path)
  return () => {
    const now = identify(path)
    if (now === seen) return key
    seen = now
    key = now === null ? freshKey() : tryKey(path)
    return key
  }
}

/** A file that became unusable while we run: a key that nobody knows, so that nothing signed holds. */
function tryKey(path: string): string {
  try {
    return readKey(path)
  } catch {
    return freshKey() // The next start says what is wrong with the file.
  }
}

/** Another text once the file is another, or was changed; null: there is none. */
export function identify(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined ? null : `${found.ino}:${found.mtimeMs}:${found.size}`
}

function readKey(path: string): string {
  try {
    return checkKey(readFileSync(path, 'latin1'), path)
  } catch (cause) {
    if (cause instanceof Fault) throw cause
    throw new Fault('input-missing', `the session key cannot be read: ${renderError(cause)}`, {
      cause,
    })
  }
}

function checkKey(text: string, where: string): string {
  const key = text.trim()
  if (key.length >= FEWEST_CHARACTERS) return key
  const what = key === '' ? 'is empty' : `is shorter than ${FEWEST_CHARACTERS} characters`
  throw new Fault(
    'input-invalid',
    `the session key ${where} ${what}: anybody could forge sessions`,
    {
      hint: 'Delete it and restart. A new key is made, and all sessions end.',
    },
  )
}

function createSigner(key: () => string): Secret {
  key() // What is wrong with it shows at the start.
  const sign = (text: string) => createHmac('sha256', key()).update(text).digest('base64url')
  return {
    sign,
    verify(text, signature) {
      // As text: Base64 has several spellings for the same bytes, and one is ours.
      const [given, wanted] = [Buffer.from(signature), Buffer.from(sign(text))]
      return given.length === wanted.length && timingSafeEqual(given, wanted)
    },
  }
}
