/** Wraps secrets that lie in the shared database: AES-256-GCM with a key that is never in it. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { Fault } from '#kit/foundation/fault.ts'

export interface Wrapping {
  wrap(name: string, content: Uint8Array): Uint8Array
  /** Throws a Fault `input-invalid` for another key, or another row's content. */
  unwrap(name: string, wrapped: Uint8Array): Uint8Array
}

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** `key`: the text of `[database] key`; `cluster`: rows are bound to this database's name. */
export function createWrapping(key: string, cluster: string): Wrapping {
  const derived = Buffer.from(hkdfSync('sha256', key, cluster, 'flasher: rows that are secret', 32))
  const bound = (name: string) => Buffer.from(`${cluster} ${name}`)
  return {
    wrap(name, content) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(ALGORITHM, derived, nonce).setAAD(bound(name))
      const sealed = [cipher.update(content), cipher.final()]
      return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed])
    },
    unwrap(name, wrapped) {
      try {
        const tagEnd = NONCE_BYTES + TAG_BYTES
        const decipher = createDecipheriv(ALGORITHM, derived, wrapped.subarray(0, NONCE_BYTES))
        decipher.setAAD(bound(name)).setAuthTag(wrapped.subarray(NONCE_BYTES, tagEnd))
        return Buffer.concat([decipher.update(wrapped.subarray(tagEnd)), decipher.final()])
      } catch (cause) {
        throw new Fault(
          'input-invalid',
          `database.key does not open the row ${name} of the database`,
          { cause, hint: 'Give every server the key with which the first one started.' },
        )
      }
    },
  }
}
