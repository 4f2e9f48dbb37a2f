/** Sends the bytes of an image to a registry in chunks as they come, and computes their digest. */
import { createHash } from 'node:crypto'
import type { BlobUpload } from '../../kit/net/registry/blob-upload.ts'

interface SentBlob {
  /** `sha256:` and 64 hexadecimal digits, of what was sent. */
  readonly digest: string
  readonly sizeBytes: number
}

/** Creates what takes the bytes of one blob in order and sends them in chunks. */
export function createBlobSender(upload: BlobUpload) {
  const hash = createHash('sha256')
  const chunk = Buffer.alloc(upload.chunkBytes)
  let filled = 0
  let sizeBytes = 0

  async function send(): Promise<boolean> {
    const bytes = chunk.subarray(0, filled)
    hash.update(bytes)
    sizeBytes += filled
    filled = 0
    return (await upload.send(bytes)) === 'sent'
  }

  return {
    /** Takes the next bytes, which may be used again afterwards. False: the upload is lost. */
    async put(bytes: Buffer): Promise<boolean> {
      for (let at = 0; at < bytes.length;) {
        const copied = bytes.copy(chunk, filled, at)
        filled += copied
        at += copied
        if (filled === chunk.length && !(await send())) return false
      }
      return true
    },
    /** Sends what is left and returns what all of it was; null: the upload is lost. */
    async end(): Promise<SentBlob | null> {
      if (filled > 0 && !(await send())) return null
      return { digest: `sha256:${hash.digest('hex')}`, sizeBytes }
    },
  }
}
