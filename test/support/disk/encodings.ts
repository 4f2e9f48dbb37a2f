/** Every way an image may be stored, each made by the tool that people use for it. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { cutAt, fromFile, pipeThrough, pzstd, skippable } from './compressed.ts'

export interface Encoding {
  readonly name: string
  readonly format: ImageFormat
  encode(image: Buffer): Buffer
}

type Argv = readonly [string, ...string[]]
const piped = (...argv: Argv) => ({ encode: (image: Buffer) => pipeThrough(argv, image) })
/** Parts of the image, each stored by itself, one behind the other. */
const inParts = (...argv: Argv) => ({
  encode(image: Buffer) {
    const third = Math.floor(image.length / 3)
    return Buffer.concat(cutAt(image, [third, 2 * third]).map((part) => pipeThrough(argv, part)))
  },
})
const qcow2 = (...flags: readonly string[]) => ({
  encode(image: Buffer) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-encoding-'))
    const [raw, path] = [join(folder.path, 'raw'), join(folder.path, 'image')]
    writeFileSync(raw, image)
    execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', ...flags, raw, path])
    return readFileSync(path)
  },
})

const ALL: readonly Encoding[] = [
  { name: 'raw', format: 'img', encode: (image) => image },
  {
    name: 'zstd with size and checksum',
    format: 'img.zst',
    encode: (image) => fromFile(['zstd', '-q', '-c', '{}'], image),
  },
  { name: 'zstd without size', format: 'img.zst', ...piped('zstd', '-q', '-c') },
  { name: 'zstd without checksum', format: 'img.zst', ...piped('zstd', '-qc', '--no-check') },
  { name: 'zstd with a long window', format: 'img.zst', ...piped('zstd', '-qc', '--long=27') },
  { name: 'zstd in frames', format: 'img.zst', ...inParts('zstd', '-q', '-c') },
  { name: 'zstd by pzstd', format: 'img.zst', encode: pzstd },
  {
    name: 'zstd between skippable frames',
    format: 'img.zst',
    encode: (image) =>
      Buffer.concat([
        skippable(Buffer.alloc(70_000, 1)),
        pipeThrough(['zstd', '-q', '-c'], image),
        skippable(Buffer.alloc(0)),
      ]),
  },
  { name: 'xz in one block', format: 'img.xz', ...piped('xz', '-0', '-T1') },
  { name: 'xz in blocks', format: 'img.xz', ...piped('xz', '-0', '-T2', '--block-size=1MiB') },
  { name: 'xz in streams', format: 'img.xz', ...inParts('xz', '-0') },
  { name: 'gzip', format: 'img.gz', ...piped('gzip', '-1') },
  { name: 'gzip by pigz', format: 'img.gz', ...piped('pigz', '-1', '-p', '2') },
  { name: 'gzip in members', format: 'img.gz', ...inParts('gzip', '-1') },
  {
    name: 'gzip with padding',
    format: 'img.gz',
    encode: (image) => Buffer.concat([pipeThrough(['gzip', '-1'], image), Buffer.alloc(3 << 20)]),
  },
  { name: 'bzip2', format: 'img.bz2', ...piped('bzip2', '-1') },
  { name: 'bzip2 by lbzip2', format: 'img.bz2', ...piped('lbzip2', '-1', '-n', '2') },
  { name: 'bzip2 in streams', format: 'img.bz2', ...inParts('bzip2', '-1') },
  { name: 'qcow2', format: 'qcow2', ...qcow2() },
  { name: 'qcow2, zlib', format: 'qcow2', ...qcow2('-c') },
  { name: 'qcow2, zstd', format: 'qcow2', ...qcow2('-c', '-o', 'compression_type=zstd') },
]

/** Each image is stored once in each way: xz and bzip2 take seconds for what does not compress. */
export const ENCODINGS: readonly Encoding[] = ALL.map((encoding) => {
  const known = new WeakMap<Buffer, Buffer>()
  return {
    ...encoding,
    encode(image: Buffer) {
      const stored = known.get(image) ?? encoding.encode(image)
      known.set(image, stored)
      return stored
    },
  }
})
