/** The bzip2 file format: its header, and where its streams end; the decoded size is stored nowhere. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { known, type RangeStep, refused, UNKNOWN_SIZE } from './image.ts'

const BLOCK = Buffer.from('314159265359', 'hex')
const END_OF_STREAM = Buffer.from('177245385090', 'hex')

export function measureBzip2(head: Buffer): RangeStep {
  if (head.length < 10) return refused('it ends within the first bytes of its bzip2 data')
  if (!/^BZh[1-9]/.test(head.toString('latin1', 0, 4))) return refused('no bzip2 data in it')
  const mark = head.subarray(4, 10)
  const isKnown = mark.equals(BLOCK) || mark.equals(END_OF_STREAM)
  return isKnown ? known(UNKNOWN_SIZE) : refused('its first bzip2 block is damaged')
}

/**
 * 48 bits at any bit, then a checksum: a block's own, and at the end one of all blocks, which tells
 * an end from data that looks like it.
 */
const MARKS = [
  { kind: 'block', first: 0x31415926, last: 0x59265359 },
  { kind: 'end', first: 0x17724538, last: 0x45385090 },
] as const

interface BlockMark {
  readonly kind: 'block' | 'end'
  /** In bits. */
  readonly bit: number
}

/** Mark, checksum, the next stream's header. */
const REACH_BYTES = 16

export function createBzip2Scan() {
  let window: Buffer = Buffer.alloc(0)
  let checksum = 0
  let isOver = false

  function take({ kind, bit }: BlockMark): boolean {
    const found = bitsAt(window, bit + 48)
    if (kind === 'block') {
      checksum = (((checksum << 1) | (checksum >>> 31)) ^ found) >>> 0
      return true
    }
    const end = Math.ceil((bit + 80) / 8)
    const isNext = isHeader(window.subarray(end, end + 4))
    if (!isNext && found !== checksum) return true
    checksum = 0
    isOver = !isNext
    return isNext || isPadding(window.subarray(end))
  }

  function scan(length: number): boolean {
    for (const mark of listMarks(window, length)) {
      if (!take(mark)) return false
      if (isOver) return true
    }
    return true
  }

  return {
    push(chunk: Buffer) {
      if (isOver) return answer(isPadding(chunk))
      window = Buffer.concat([window, chunk])
      const to = Math.max(0, window.length - REACH_BYTES)
      const isRight = scan(to)
      window = window.subarray(to)
      return answer(isRight)
    },
    end: () => answer(isOver || scan(window.length)),
    isWhole: () => isOver,
  }
}

const answer = (isRight: boolean): Result<null, 'trailing-garbage'> =>
  isRight ? accept(null) : refuse('trailing-garbage')
const isPadding = (bytes: Buffer) => bytes.every((byte) => byte === 0)

function isHeader(bytes: Buffer): boolean {
  const level = bytes[3] ?? 0
  return bytes.subarray(0, 3).toString('latin1') === 'BZh' && level >= 0x31 && level <= 0x39
}

/** The first two bytes that a mark fills whole, for each bit that it may begin at. */
const SHIFTS = MARKS.flatMap((mark) =>
  [0, 1, 2, 3, 4, 5, 6, 7].map((shift) => ({
    ...mark,
    shift,
    pair: (mark.first >>> (8 + shift)) & 0xffff,
  })),
)
/** Rules nearly every place out at one look. */
const IS_CANDIDATE = new Uint8Array(65_536)
for (const { pair } of SHIFTS) IS_CANDIDATE[pair] = 1

function listMarks(bytes: Buffer, length: number): readonly BlockMark[] {
  const marks: BlockMark[] = []
  let pair = bytes[1] ?? 0
  for (let at = 0; at < length; at += 1) {
    pair = ((pair << 8) | (bytes[at + 2] ?? 0)) & 0xffff
    if (IS_CANDIDATE[pair] === 0) continue
    for (const mark of SHIFTS) {
      const bit = 8 * at + mark.shift
      if (mark.pair === pair && isMark(bytes, bit, mark)) marks.push({ kind: mark.kind, bit })
    }
  }
  return marks
}

const isMark = (bytes: Buffer, bit: number, { first, last }: (typeof MARKS)[number]) =>
  bitsAt(bytes, bit) === first && bitsAt(bytes, bit + 16) === last

/** 32 bits; zeros beyond the end. */
function bitsAt(bytes: Buffer, bit: number): number {
  const at = bit >>> 3
  const shift = bit & 7
  let high = 0
  for (let n = 0; n < 4; n += 1) high = (high << 8) | (bytes[at + n] ?? 0)
  return ((high << shift) | ((bytes[at + 4] ?? 0) >>> (8 - shift))) >>> 0
}
