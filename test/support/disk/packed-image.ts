/** Images in frames, packed by the program's own code, and such whose index says something else. */
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { digestOfZeros, FRAME_BYTES } from '#engine/image/rules/frame-map.ts'
import { packImage } from '#engine/pack/packer.ts'

export interface PackedImage {
  readonly file: Buffer
  readonly sha256: string
  readonly indexSha256: string
}

export async function packBuffer(image: Buffer): Promise<PackedImage> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-packed-'))
  const [from, output] = [join(folder.path, 'a.img'), join(folder.path, 'a.img.zst')]
  await writeFile(from, image)
  const order = { image: from, format: null, sha256: null, output, level: 1 }
  const signal = new AbortController().signal
  const { sha256, indexSha256 } = await packImage({ env: process.env }, order, {
    signal,
    onProgress: () => undefined,
  })
  return { file: await readFile(output), sha256, indexSha256 }
}

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
