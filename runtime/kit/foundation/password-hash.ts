/** Parses password hashes (`$scrypt$…`, `$argon2id$…`), and refuses those too weak or too expensive. */
import { accept, refuse, type Result } from './result.ts'

export type PasswordHash =
  | {
      readonly kind: 'scrypt'
      /** Memory is 128 * r * 2^ln bytes. */
      readonly ln: number
      readonly r: number
      readonly p: number
      readonly salt: Uint8Array
      readonly hash: Uint8Array
    }
  | {
      readonly kind: 'argon2id'
      /** KiB. */
      readonly memory: number
      readonly passes: number
      readonly parallelism: number
      readonly salt: Uint8Array
      readonly hash: Uint8Array
    }

type PasswordHashRefusal = 'not-a-hash' | 'out-of-bounds'

/** 16 MiB and about a tenth of a second: a login guess costs that as well. */
export const SCRYPT_COST = { ln: 14, r: 8, p: 5 } as const

/** A login must not be able to take the machine's memory or a minute of its time. */
const MAX_BYTES = 2 ** 28
const MAX_WORK = 64

const SHAPE =
  /^\$(scrypt|argon2id\$v=19)\$([a-z]+=\d+(?:,[a-z]+=\d+)*)\$([\w+/]+)={0,2}\$([\w+/]+)={0,2}$/

/**
 * Parses the text form that both algorithms share: `$name$v=19$m=65536,t=3,p=4$salt$hash`, in
 * Base64. A hash that is too weak or too expensive is refused as `out-of-bounds`.
 */
export function parsePasswordHash(text: string): Result<PasswordHash, PasswordHashRefusal> {
  const [whole, name, parameters = '', salt64 = '', hash64 = ''] = SHAPE.exec(text.trim()) ?? []
  if (whole === undefined) return refuse('not-a-hash')
  const given = new Map(parameters.split(',').map((pair) => split(pair)))
  const number = (key: string) => given.get(key) ?? 0
  const stored = { salt: decode(salt64), hash: decode(hash64) }
  if (stored.salt.length < 8 || !inside(stored.hash.length, 16, 128)) return refuse('out-of-bounds')
  return name === 'scrypt' ? parseScrypt(number, stored) : parseArgon2(number, stored)
}

type StoredHash = Pick<PasswordHash, 'salt' | 'hash'>
type Parsed = Result<PasswordHash, PasswordHashRefusal>

function parseScrypt(number: (key: string) => number, stored: StoredHash): Parsed {
  const cost = { ln: number('ln'), r: number('r'), p: number('p') }
  const isFair = inside(cost.ln, 10, 20) && inside(cost.r, 1, 64) && inside(cost.p, 1, 16)
  return isFair && 128 * cost.r * 2 ** cost.ln <= MAX_BYTES
    ? accept({ kind: 'scrypt', ...cost, ...stored })
    : refuse('out-of-bounds')
}

function parseArgon2(number: (key: string) => number, stored: StoredHash): Parsed {
  const cost = { memory: number('m'), passes: number('t'), parallelism: number('p') }
  const isFair =
    inside(cost.memory, 8 * cost.parallelism, MAX_BYTES / 1024) &&
    inside(cost.passes, 1, MAX_WORK) &&
    inside(cost.parallelism, 1, 16)
  return isFair ? accept({ kind: 'argon2id', ...cost, ...stored }) : refuse('out-of-bounds')
}

const inside = (value: number, least: number, most: number) => value >= least && value <= most

function split(pair: string): readonly [string, number] {
  const [key = '', value = ''] = pair.split('=')
  return [key, Number(value)]
}

const decode = (base64: string) => Uint8Array.fromBase64(base64, { lastChunkHandling: 'loose' })

const encode = (bytes: Uint8Array) => bytes.toBase64({ omitPadding: true })

export const renderScrypt = (salt: Uint8Array, hash: Uint8Array): string =>
  `$scrypt$ln=${SCRYPT_COST.ln},r=${SCRYPT_COST.r},p=${SCRYPT_COST.p}$${encode(salt)}$${encode(hash)}`

/** Returns one spelling (NFC) for what different keyboards send for the same letters. */
export const normalisePassword = (password: string): string => password.normalize('NFC')

/** Letters and digits that nobody takes for one another. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789'

/** Four groups of four letters: about 79 bits, easy to type from a screen. */
export function renderGenerated(random: Uint8Array): string {
  const letters = [...random]
    // The bytes beyond a multiple of the alphabet would favour its beginning.
    .filter((byte) => byte < 256 - (256 % ALPHABET.length))
    .slice(0, 16)
    .map((byte) => ALPHABET[byte % ALPHABET.length])
  return letters.join('').replace(/(.{4})(?=.)/g, '$1-')
}
