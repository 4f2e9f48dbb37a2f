/** What tests do with sources and faults: read everything, catch what is thrown, make bytes. */
import { createHash } from 'node:crypto'
import { Fault } from '#kit/foundation/fault.ts'

export async function collect(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  // Copied, because a chunk is the reader's only until the next one.
  for await (const chunk of chunks) parts.push(Buffer.from(chunk))
  return Buffer.concat(parts)
}

/** The Fault that an action ends with; anything else fails the test. */
export async function faultOf(action: () => Promise<unknown>): Promise<Fault> {
  try {
    await action()
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown
    throw thrown
  }
  throw new Error('no fault was thrown')
}

/** Numbers from 0 to 1 that are the same in every run. */
export function createRandom(seed: number): () => number {
  let counter = 0
  return () => {
    counter += 1
    const digest = createHash('sha256').update(`${seed}/${counter}`).digest()
    return digest.readUInt32LE(0) / 2 ** 32
  }
}

/** Bytes that repeat nowhere near, the same in every run. */
export function makeBytes(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; at += 32) {
    createHash('sha256').update(`${seed}:${at}`).digest().copy(bytes, at)
  }
  return bytes
}
