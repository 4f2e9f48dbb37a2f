/** Real compressed files of many kinds, made by the tools themselves, and damage done to them. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtempDisposableSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import type { RangeStep } from '#engine/image/rules/image.ts'
import { makeBytes } from '../collect.ts'

/** What a tool makes of its standard input. */
export const pipeThrough = (argv: readonly [string, ...string[]], input: Buffer): Buffer => {
  const [tool, ...rest] = argv
  return execFileSync(tool, rest, { input, stdio: 'pipe', maxBuffer: 2 ** 28 })
}

/** What a tool makes of a file, whose size it can see; `{}` in the arguments is the file. */
export function fromFile(argv: readonly [string, ...string[]], content: Buffer): Buffer {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-compressed-'))
  const path = join(folder.path, 'content')
  writeFileSync(path, content)
  const [tool, ...rest] = argv.map((word) => (word === '{}' ? path : word))
  return execFileSync(tool ?? '', rest, { stdio: 'pipe', maxBuffer: 2 ** 28 })
}

export const pzstd = (content: Buffer): Buffer => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-compressed-'))
  const path = join(folder.path, 'content')
  writeFileSync(path, content)
  execFileSync('pzstd', ['-q', '-1', '-p', '2', path, '-o', `${path}.zst`], { stdio: 'pipe' })
  return readFileSync(`${path}.zst`)
}

/** Parts that do not compress, that do, and zeros. */
export const makeContent = (bytes: number, seed = 1): Buffer => {
  const part = Math.floor(bytes / 4)
  const words = Buffer.alloc(part, 'a disk holds partitions, and partitions hold files; ')
  const rest = bytes - 3 * part
  return Buffer.concat([
    makeBytes(part, seed).subarray(0, part),
    Buffer.alloc(part),
    words,
    makeBytes(rest, seed + 1).subarray(0, rest),
  ])
}

/** A skippable frame as zstd's format has it. */
export const skippable = (body: Buffer, variant = 0): Buffer => {
  const header = Buffer.alloc(8)
  header.writeUInt32LE(0x184d2a50 + variant, 0)
  header.writeUInt32LE(body.length, 4)
  return Buffer.concat([header, body])
}

/** One frame that says what it holds. */
const sized = (part: Buffer) => fromFile(['zstd', '-q', '-c', '{}'], part)
/** One that does not, as tools write that compress a stream. */
export const unsized = (part: Buffer): Buffer => pipeThrough(['zstd', '-q', '-c'], part)

/** A file of the seekable format: one frame for each part. */
export function seekable(
  parts: readonly Buffer[],
  hasChecksums = false,
  compress: (part: Buffer) => Buffer = sized,
): Buffer {
  const frames = parts.map((part) => compress(part))
  const entries = frames.map((frame, index) => {
    const entry = Buffer.alloc(hasChecksums ? 12 : 8)
    entry.writeUInt32LE(frame.length, 0)
    entry.writeUInt32LE(parts[index]?.length ?? 0, 4)
    return entry
  })
  const footer = Buffer.alloc(9)
  footer.writeUInt32LE(parts.length, 0)
  footer.writeUInt8(hasChecksums ? 0x80 : 0, 4)
  footer.writeUInt32LE(0x8f92eab1, 5)
  return Buffer.concat([...frames, skippable(Buffer.concat([...entries, footer]), 14)])
}

/** A copy with some bytes changed, put in, taken out, or cut off. */
export const damaged = (bytes: Buffer): fc.Arbitrary<Buffer> =>
  fc
    .array(
      fc.record({
        // Damage near the ends meets headers and trailers more often.
        at: fc.oneof(
          fc.nat(40),
          fc.nat(bytes.length),
          fc.nat(40).map((back) => bytes.length - back),
        ),
        how: fc.constantFrom('flip', 'set', 'insert', 'remove', 'cut'),
        value: fc.uint8Array({ minLength: 1, maxLength: 9 }),
      }),
      { minLength: 1, maxLength: 3 },
    )
    .map((damages) => damages.reduce(applyDamage, bytes))

interface Damage {
  readonly at: number
  readonly how: 'flip' | 'set' | 'insert' | 'remove' | 'cut'
  readonly value: Uint8Array
}

function applyDamage(bytes: Buffer, { at, how, value }: Damage): Buffer {
  const place = Math.max(0, Math.min(at, bytes.length))
  const [before, after] = [bytes.subarray(0, place), bytes.subarray(place)]
  const ways = {
    flip: () =>
      Buffer.concat([
        before,
        after.map((byte, index) => (index === 0 ? byte ^ (value[0] ?? 1) : byte)),
      ]),
    set: () => Buffer.concat([before, value, after.subarray(value.length)]),
    insert: () => Buffer.concat([before, value, after]),
    remove: () => Buffer.concat([before, after.subarray(value.length)]),
    cut: () => Buffer.from(before),
  }
  return ways[how]()
}

/** The bytes cut at the given places. */
export function cutAt(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const borders = [
    0,
    ...places.filter((place) => place <= bytes.length).toSorted((a, b) => a - b),
    bytes.length,
  ]
  return borders.slice(1).map((to, index) => bytes.subarray(borders[index], to))
}

/** Carries out a measurement in memory; `windowBytes`: how much comes with each read beyond what is asked. */
export function followSteps(first: RangeStep, bytes: Buffer, windowBytes = 0) {
  let step = first
  let reads = 0
  while (step.kind === 'read') {
    const { at, length } = step
    const isInside = at >= 0 && length >= 1 && at + length <= bytes.length
    if (!isInside) throw new Error(`asked for ${length} bytes at ${at} of ${bytes.length}`)
    reads += 1
    if (reads > bytes.length + 100) throw new Error('more steps than bytes')
    step = step.take(bytes.subarray(at, at + Math.max(length, windowBytes)))
  }
  return { reads, step }
}

/** Metadata as OpenWrt appends it to an image: its bytes, then 16 that say how many they are. */
export function makeTrailer(metadata: Buffer): Buffer {
  const end = Buffer.alloc(16)
  end.write('FWx0', 0, 'latin1')
  end.writeUInt32BE(0x12345678, 4)
  end.writeUInt32BE(metadata.length + end.length, 12)
  return Buffer.concat([metadata, end])
}
