/** What docs/image-format.md says of its bytes: the test vector, its digests, and the tables of its fields. */
import { createHash } from 'node:crypto'
import { zstdDecompressSync } from 'node:zlib'
import {
  encodeFrameIndex,
  FRAME_BYTES,
  parseFrameIndex,
} from '../../../runtime/engine/image/rules/frame-index.ts'
import { numberIn } from './constants.ts'

const FRAME_INDEX = 'runtime/engine/image/rules/frame-index.ts'
const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** The test vector as it stands in the page: a whole image in frames. */
export function readVector(page: string): Buffer {
  const [, hex = ''] = /```text\n([0-9a-f\n]+)```/.exec(page) ?? []
  return Buffer.from(hex.replaceAll('\n', ''), 'hex')
}

/** What the image of the test vector is, by the page's words. */
const IMAGE = Buffer.concat([
  Buffer.alloc(FRAME_BYTES),
  Buffer.from(Array.from({ length: 512 }, (_, at) => at % 256)),
])

/** What is wrong with the bytes that the page shows, as sentences. */
export function listWrongBytes(page: string): readonly string[] {
  const file = readVector(page)
  const at = file.indexOf('flashidx') - 8
  const end = at < 0 ? 0 : at + 8 + file.readUInt32LE(at + 4)
  const parsed = at < 0 ? null : parseFrameIndex(file.subarray(at, end), at)
  if (parsed?.ok !== true) return ['the test vector has no index', ...listWrongFields(page)]
  const index = parsed.value
  const said = [...page.matchAll(/`([0-9a-f]{64})`/g)].map(([, one]) => one)
  const wanted = [digest(IMAGE), index.indexSha256, digest(file)]
  const entries = [0, 1].map((one) => index.at(one))
  const encoded = encodeFrameIndex({
    imageBytes: IMAGE.length,
    imageSha256: createHash('sha256').update(IMAGE).digest(),
    entries: entries.map(({ storedBytes, isZero }, one) => ({
      storedBytes,
      isZero,
      sha256: createHash('sha256')
        .update(IMAGE.subarray(one * FRAME_BYTES, (one + 1) * FRAME_BYTES))
        .digest(),
    })),
  })
  const checks: readonly (readonly [boolean, string])[] = [
    [isImage(file.subarray(0, at)), 'the test vector is not the image that the page describes'],
    [encoded.equals(file.subarray(at, end)), 'the index of the test vector is not what we encode'],
    [
      JSON.stringify(said) === JSON.stringify(wanted),
      `the digests of the image, the index and the file are ${wanted.join(', ')}`,
    ],
  ]
  return [
    ...checks.filter(([isRight]) => !isRight).map(([, wrong]) => wrong),
    ...listWrongFields(page),
  ]
}

function isImage(frames: Buffer): boolean {
  try {
    return zstdDecompressSync(frames).equals(IMAGE)
  } catch {
    return false
  }
}

/** Each field begins where the one before ends, and the last one ends where the code has it. */
function listWrongFields(page: string): readonly string[] {
  const tables = [...page.matchAll(/^\| Offset [^]*?\n\n/gm)].map(([table]) =>
    [...table.matchAll(/^\| (\d+) +\| +(\d+) \|/gm)].map(([, offset, bytes]) => ({
      offset: Number(offset),
      end: Number(offset) + Number(bytes),
    })),
  )
  const [head, entry] = [
    numberIn(FRAME_INDEX, 'INDEX_HEAD_BYTES'),
    numberIn(FRAME_INDEX, 'ENTRY_BYTES'),
  ]
  const ends = tables.map((fields) => fields.at(-1)?.end)
  const isGapless = tables.every((fields) =>
    fields.every(({ offset }, at) => offset === (at === 0 ? 0 : fields[at - 1]?.end)),
  )
  return isGapless && JSON.stringify(ends) === JSON.stringify([head + entry, entry])
    ? []
    : ['a field does not begin where the one before it ends, or the last one ends elsewhere']
}
