/** Sends the bytes of an image to a registry in chunks as they come; it keeps their digest and both ends. */
import { createHash } from 'node:crypto'
import type { BlobSample, BlobUpload } from '#kit/net/registry/registry-writer.ts'

export interface SentBlob {
  /** `sha256:` and 64 hexadecimal digits, of what was sent. */
  readonly digest: string
  readonly sizeBytes: number
  /** Both ends: they hold the partition table and the index. */
  readonly samples: readonly BlobSample[]
}

const SAMPLE_BYTES = 64 * 1024

export function createBlobSender(upload: BlobUpload) {
  const hash = createHash('sha256')
  const chunk = Buffer.alloc(upload.chunkBytes)
  let filled = 0
  let sizeBytes = 0
  let head = Buffer.alloc(0)
  let tail = Buffer.alloc(0)

  async function send(): Promise<boolean> {
    const bytes = chunk.subarray(0, filled)
    hash.update(bytes)
    if (sizeBytes === 0) head = Buffer.from(bytes.subarray(0, SAMPLE_BYTES))
    tail = Buffer.concat([tail, bytes.subarray(-SAMPLE_BYTES)]).subarray(-SAMPLE_BYTES)
    sizeBytes += filled
    filled = 0
    return (await upload.send(bytes)) === 'sent'
  }

  return {
    /** The bytes may be reused afterwards. False: the upload is lost. */
    async put(bytes: Buffer): Promise<boolean> {
      for (let at = 0; at < bytes.length;) {
        const copied = bytes.copy(chunk, filled, at)
        filled += copied
        at += copied
        if (filled === chunk.length && !(await send())) return false
      }
      return true
    },
    /** Null: the upload is lost. */
    async end(): Promise<SentBlob | null> {
      if (filled > 0 && !(await send())) return null
      const samples = [
        { at: 0, bytes: head },
        { at: sizeBytes - tail.length, bytes: tail },
      ]
      return { digest: `sha256:${hash.digest('hex')}`, sizeBytes, samples }
    },
  }
}
