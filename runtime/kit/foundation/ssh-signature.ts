/** Signatures that `ssh-keygen -Y sign` makes with an Ed25519 key (OpenSSH, PROTOCOL.sshsig). */
import { createHash, createPublicKey, verify } from 'node:crypto'

/** A key as a `.pub` file has it, perhaps with a comment; the base64 begins with the name of its type. */
export const PUBLIC_KEY: RegExp =
  /^ssh-ed25519 (AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43})(?: [^\n,]{0,200})?$/

const MAGIC = 'SSHSIG'
const VERSION = 1
const TYPE = 'ssh-ed25519'
const HASHES: ReadonlySet<string> = new Set(['sha256', 'sha512'])
const ARMOR = {
  begin: '-----BEGIN SSH SIGNATURE-----',
  end: '-----END SSH SIGNATURE-----',
} as const
/** Those of our keys take some 300 characters. */
const MAX_CHARACTERS = 4096

interface Signed {
  readonly message: string
  /** The content of the `.sig` file. */
  readonly signature: string
  /** What the signature was made for (`ssh-keygen -Y sign -n …`). */
  readonly namespace: string
  /** Whose signatures count, as `PUBLIC_KEY` has them. */
  readonly keys: readonly string[]
}

/** Null where one of the keys has signed it, else one clause that says what is wrong. */
export function findSignatureFault({ message, signature, namespace, keys }: Signed): string | null {
  const parts = parseSignature(signature)
  if (parts === null) return 'its signature is not one that ssh-keygen makes with an Ed25519 key'
  if (parts.namespace !== namespace) {
    return `its signature was made for another purpose than ${namespace}`
  }
  const known = keys.map((key) => PUBLIC_KEY.exec(key)?.[1] ?? '')
  if (!known.includes(parts.key.toString('base64'))) {
    return 'its signature is by a key that is not configured'
  }
  const digest = createHash(parts.hash).update(message).digest()
  const texts = [parts.namespace, parts.reserved, parts.hash, digest]
  const data = Buffer.concat([Buffer.from(MAGIC), ...texts.map(renderField)])
  const isRight = verify(null, data, toPublicKey(parts.key), parts.signature)
  return isRight ? null : 'it is not what was signed'
}

/** The key is what the last field of its blob holds. */
const toPublicKey = (blob: Buffer) =>
  createPublicKey({
    format: 'jwk',
    key: { kty: 'OKP', crv: 'Ed25519', x: blob.subarray(-KEY_BYTES).toString('base64url') },
  })

const KEY_BYTES = 32
/** The name of the type and the key, each with its length. */
const BLOB_BYTES = 4 + TYPE.length + 4 + KEY_BYTES

interface SshSignature {
  /** The blob of the public key. */
  readonly key: Buffer
  readonly namespace: string
  readonly reserved: Buffer
  readonly hash: string
  readonly signature: Buffer
}

/** Null for anything else than a signature by an Ed25519 key. */
function parseSignature(armored: string): SshSignature | null {
  const fields = readSignatureFields(armored)
  if (fields?.length !== 5) return null
  const at = (index: number) => fields[index] ?? EMPTY
  const [key, hash] = [at(0), at(3).toString('latin1')]
  const [type = EMPTY, signature = EMPTY] = readFields(at(4)) ?? []
  const isOurs = type.toString('latin1') === TYPE && key.length === BLOB_BYTES
  if (!isOurs || !HASHES.has(hash)) return null
  return { key, namespace: at(1).toString('utf8'), reserved: at(2), hash, signature }
}

function readSignatureFields(armored: string): readonly Buffer[] | null {
  const text = armored.length > MAX_CHARACTERS ? '' : armored.trim()
  if (!text.startsWith(ARMOR.begin) || !text.endsWith(ARMOR.end)) return null
  const bytes = Buffer.from(text.slice(ARMOR.begin.length, -ARMOR.end.length), 'base64')
  const head = MAGIC.length + 4
  if (bytes.length < head || bytes.toString('latin1', 0, MAGIC.length) !== MAGIC) return null
  return bytes.readUInt32BE(MAGIC.length) === VERSION ? readFields(bytes.subarray(head)) : null
}

const EMPTY = Buffer.alloc(0)

/** Null where a field is longer than what is left. */
function readFields(bytes: Buffer): readonly Buffer[] | null {
  const fields: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    if (at + 4 > bytes.length) return null
    const end = at + 4 + bytes.readUInt32BE(at)
    if (end > bytes.length) return null
    fields.push(bytes.subarray(at + 4, end))
    at = end
  }
  return fields
}

function renderField(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}
