/** Reads an image at the followed cache for one request, while this cache does not have those bytes. */
import type { Followed } from './followed.ts'

export type Relay = ReturnType<typeof createRelay>

/** The largest part that is asked for at once; the first one is what the reader wants. */
const MAX_PART_BYTES = 8 * 1024 * 1024

interface RelayedImage {
  readonly url: string
  /** Null: nobody knows it yet, and parts of it are unavailable. */
  readonly sha256: string | null
  readonly sizeBytes: number | null
}

/** Creates a reader that is disposed when its request ends; reads come one after the other. */
export function createRelay(followed: Followed, { url, sha256, sizeBytes }: RelayedImage) {
  const ending = new AbortController()
  let bytes: AsyncGenerator<Buffer, void, undefined> | null = null
  let rest: Buffer = Buffer.alloc(0)
  let [at, partBytes] = [0, 0]

  async function close() {
    const before = bytes
    bytes = null
    rest = Buffer.alloc(0)
    await before?.return().catch(() => undefined)
  }

  /** A reader that goes on gets larger and larger parts; one that jumps begins small again. */
  function begin(offset: number, wanted: number, signal: AbortSignal) {
    const both = AbortSignal.any([signal, ending.signal])
    at = offset
    if (sha256 === null || sizeBytes === null) return followed.readWhole(url, both)
    partBytes = Math.min(MAX_PART_BYTES, Math.max(wanted, partBytes * 2))
    const to = Math.min(sizeBytes, offset + partBytes)
    return followed.readPart({ url, sha256, from: offset, to, signal: both })
  }

  async function next(): Promise<Buffer | null> {
    if (rest.length > 0) return rest
    const found = await bytes?.next()
    return found === undefined || found.done === true ? null : found.value
  }

  return {
    /** Fills from `offset` on; 0 at the end. Throws a Fault where the followed cache fails. */
    async read(into: Buffer, offset: number, signal: AbortSignal): Promise<number> {
      if (sizeBytes !== null && offset >= sizeBytes) return 0
      if (bytes !== null && offset !== at) {
        await close()
        partBytes = 0
      }
      const isNew = bytes === null
      bytes ??= begin(offset, into.length, signal)
      let found = await next()
      if (found === null && !isNew && sha256 !== null) {
        bytes = begin(offset, into.length, signal)
        found = await next()
      }
      if (found === null) return 0
      const taken = found.copy(into)
      rest = found.subarray(taken)
      at += taken
      return taken
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await close()
    },
  }
}
