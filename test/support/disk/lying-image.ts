/** Images in frames whose index says something else than their frames hold. */
import { digestOfZeros, FRAME_BYTES } from '../../../runtime/core/image/frame-index.ts'

/** Where the entry of a frame begins in the file. */
const entryAt = (file: Buffer, frame: number) => file.indexOf('flashidx') + 64 + frame * 40

/** The index calls a whole frame of data one of zeros. */
export function callZeros(file: Buffer, frame: number): Buffer {
  const lying = Buffer.from(file)
  const at = entryAt(file, frame)
  lying.writeUInt32LE(1, at + 4)
  digestOfZeros(FRAME_BYTES).copy(lying, at + 8)
  return lying
}

/** The index has another digest of a frame than the content's. */
export function changeDigest(file: Buffer, frame: number): Buffer {
  const lying = Buffer.from(file)
  const at = entryAt(file, frame)
  return Buffer.from(lying.fill(7, at + 8, at + 40))
}

/** The index has another digest of the whole image. */
export function changeImageDigest(file: Buffer): Buffer {
  const lying = Buffer.from(file)
  const at = file.indexOf('flashidx') + 32
  return Buffer.from(lying.fill(7, at, at + 32))
}

/** The index has a flag that nobody knows: it does not add up. */
export function changeFlags(file: Buffer, frame: number): Buffer {
  const lying = Buffer.from(file)
  lying.writeUInt32LE(6, entryAt(file, frame) + 4)
  return lying
}
