/** Images in frames, packed by the program's own code. */
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packImage } from '../../../runtime/services/pack/packer.ts'

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
