/** Reads the map of used blocks that partclone writes (GNU ddrescue's domain file), and trusts none of it. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { createRangeList, type RangeList } from './range-list.ts'

/** More are not worth their memory: the partition is read whole then. */
const MAX_PIECES = 4_000_000
/** No line of a map is nearly as long. */
export const MAX_MAP_LINE = 256

type MapDefect = 'not-a-map' | 'not-in-order' | 'outside' | 'too-many' | 'empty'

export interface DomainParser {
  /** False: the rest is of no interest. */
  take(line: string): boolean
  isWhole(): boolean
  /** What the map does not mention of the file system counts as used. */
  end(): Result<RangeList, MapDefect>
}

const STATUS = /^0x[0-9A-Fa-f]{1,14}\s+[?*/\-F+G]$/
const PIECE = /^(0x[0-9A-Fa-f]{1,14})\s+(0x[0-9A-Fa-f]{1,14})\s+([?+])$/

/** Bytes of the partition, and of its file system. */
export function createDomainParser(bytes: number, ownBytes: number = bytes): DomainParser {
  const used = createRangeList()
  let defect: MapDefect | null = null
  let hasStatus = false
  let pieces = 0
  let next = 0

  function judge(offset: number, length: number): MapDefect | null {
    if (offset !== next || length === 0) return 'not-in-order'
    if (length > bytes - offset) return 'outside'
    return pieces >= MAX_PIECES ? 'too-many' : null
  }

  function takePiece(line: string): MapDefect | null {
    const [, position = '', size = '', state] = PIECE.exec(line) ?? []
    if (state === undefined) return 'not-a-map'
    const [offset, length] = [Number(position), Number(size)]
    const found = judge(offset, length)
    if (found !== null) return found
    if (state === '+') used.add({ offset, bytes: length })
    pieces += 1
    next = offset + length
    return null
  }

  return {
    take(line) {
      const text = line.trim()
      if (defect !== null) return false
      if (text === '' || text.startsWith('#')) return true
      // The first line that counts is where a rescue would go on.
      if (hasStatus) defect = takePiece(text)
      else if (STATUS.test(text)) hasStatus = true
      else defect = 'not-a-map'
      return defect === null
    },
    isWhole: () => defect === null && next === bytes,
    end() {
      if (defect !== null) return refuse(defect)
      // Every file system has blocks of its own.
      if (used.count === 0) return refuse('empty')
      if (next < ownBytes) used.add({ offset: next, bytes: ownBytes - next })
      return accept(used)
    },
  }
}

const DEFECTS: Readonly<Record<MapDefect, string>> = {
  'not-a-map': 'it is not a map',
  'not-in-order': 'its pieces overlap or leave gaps',
  outside: 'it goes beyond the partition',
  'too-many': 'it has too many pieces',
  empty: 'it names no used block',
}

export const renderMapDefect = (defect: MapDefect): string => DEFECTS[defect]
