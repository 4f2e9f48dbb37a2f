/** The administrator's password: where it is stored, checking a guess, setting a new one. */
import { argon2, createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { Fault, isMissing, renderError } from '#kit/foundation/fault.ts'
import {
  normalisePassword,
  parsePasswordHash,
  renderGenerated,
  renderScrypt,
  SCRYPT_COST,
  type PasswordHash,
} from '#kit/foundation/password-hash.ts'
import { replaceFile } from '#kit/host/folders.ts'

export type Passwords = ReturnType<typeof createPasswords>

interface PasswordsOptions {
  readonly path: string
  /** The current configuration; blank: not set. */
  configured(): { readonly password: string; readonly password_hash: string }
  /** Awaited after a new password is stored; gives it to the other servers. */
  share?(): Promise<void>
}

const LONGEST = 1024
/** Limits waiting guesses: hashing takes memory and a thread that boot files need too. */
const MAX_WAITING = 16

/**
 * The configured password counts, plain before hashed; else the hash in the file. A check rejects
 * with a Fault if a hash cannot be read.
 */
export function createPasswords({ path, configured, share }: PasswordsOptions) {
  const inTurn = createQueue(MAX_WAITING)

  /** Compares in constant time; a hash costs about 0.1 s, one after the other. */
  async function check(given: string): Promise<boolean> {
    if (given.length > LONGEST) return false
    const { password, password_hash: hash } = configured()
    if (password.trim() !== '') return isSameText(given, password)
    const text = hash.trim() === '' ? await readHash(path) : hash
    return text !== null && inTurn(() => matches(normalisePassword(given), readable(text, path)))
  }

  async function keep(password: string): Promise<string> {
    const text = `${await hashPassword(password)}\n`
    await replaceFile(path, text, 0o600)
    return text
  }

  /** Stores a hash. A Fault `conflict` if another server changed it meanwhile; theirs counts. */
  async function set(password: string): Promise<void> {
    const text = await keep(password)
    if (share === undefined) return
    await share()
    // A change made elsewhere has replaced ours by now.
    if ((await readHash(path)) !== text) throw CHANGED_ELSEWHERE
  }

  return {
    check,
    /** Null hash: no password is right, and the check takes as long. */
    checkHash: (given: string, hash: string | null): Promise<boolean> =>
      inTurn(async () => {
        if (given.length > LONGEST) return false
        const wanted = parsePasswordHash(hash ?? (await nobodysHash()))
        const isRight = wanted.ok && (await matches(normalisePassword(given), wanted.value))
        return isRight && hash !== null
      }),
    set,
    /** Makes a password if there is none. It is only in this answer; the file holds a hash. */
    async ensure(): Promise<string | null> {
      const { password, password_hash: hash } = configured()
      if (password.trim() !== '' || hash.trim() !== '') return null
      const kept = await readHash(path)
      if (kept !== null) {
        readable(kept, path)
        return null
      }
      const made = generatePassword()
      await keep(made)
      return made
    },
  }
}

let nobodys: Promise<string> | null = null

/** Checked for unknown names, so that they take as long. */
const nobodysHash = () => (nobodys ??= hashPassword(randomBytes(16).toString('hex')))

const CHANGED_ELSEWHERE = new Fault(
  'conflict',
  'the password was changed on another server at the same time, and that change was kept',
  { hint: 'Log in with that password to set another one.' },
)

export const generatePassword = (): string => renderGenerated(randomBytes(64))

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16)
  const hash = await derive(normalisePassword(password), {
    kind: 'scrypt',
    ...SCRYPT_COST,
    salt,
    hash: new Uint8Array(32),
  })
  return renderScrypt(salt, hash)
}

async function readHash(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'latin1')
  } catch (cause) {
    if (isMissing(cause)) return null
    throw new Fault('input-missing', `the password cannot be read: ${renderError(cause)}`, {
      cause,
    })
  }
}

function readable(text: string, path: string): PasswordHash {
  const hash = parsePasswordHash(text)
  if (hash.ok) return hash.value
  throw new Fault('input-invalid', `${path} holds no password hash`, {
    hint: 'flasher-web password sets a new password.',
  })
}

/** Digests hide the length, too. */
function isSameText(one: string, two: string): boolean {
  return timingSafeEqual(digestOf(one), digestOf(two))
}

const digestOf = (text: string) =>
  createHmac('sha256', PROCESS_KEY).update(normalisePassword(text)).digest()

const PROCESS_KEY = randomBytes(32)

async function matches(password: string, wanted: PasswordHash): Promise<boolean> {
  return timingSafeEqual(await derive(password, wanted), wanted.hash)
}

const runScrypt = promisify<string, Uint8Array, number, object, Buffer>(scrypt)
const runArgon2 = promisify(argon2)

function derive(password: string, wanted: PasswordHash): Promise<Uint8Array> {
  const { salt, hash } = wanted
  if (wanted.kind === 'scrypt') {
    const N = 2 ** wanted.ln
    const maxmem = 256 * wanted.r * N
    return runScrypt(password, salt, hash.length, { N, r: wanted.r, p: wanted.p, maxmem })
  }
  const { memory, passes, parallelism } = wanted
  return runArgon2('argon2id', {
    message: password,
    nonce: salt,
    tagLength: hash.length,
    memory,
    passes,
    parallelism,
  })
}

/** Runs one job at a time; more than `most` waiting are turned away. */
function createQueue(most: number) {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  return async <T>(job: () => Promise<T>): Promise<T> => {
    if (waiting >= most) throw new Fault('busy', 'too many logins at once; try again in a moment')
    waiting += 1
    const turn = last.then(job)
    // The next job runs even if this one failed.
    last = turn.catch(() => {})
    try {
      return await turn
    } finally {
      waiting -= 1
    }
  }
}
