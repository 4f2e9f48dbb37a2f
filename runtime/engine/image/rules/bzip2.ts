/** The bzip2 file format: its header; the decoded size is stored nowhere. */
import { known, refused, type RangeStep, UNKNOWN_SIZE } from './image.ts'

const BLOCK = Buffer.from('314159265359', 'hex')
const END_OF_STREAM = Buffer.from('177245385090', 'hex')

export function measureBzip2(head: Buffer): RangeStep {
  if (head.length < 10) return refused('it ends within the first bytes of its bzip2 data')
  if (!/^BZh[1-9]/.test(head.toString('latin1', 0, 4))) return refused('no bzip2 data in it')
  const mark = head.subarray(4, 10)
  const isKnown = mark.equals(BLOCK) || mark.equals(END_OF_STREAM)
  return isKnown ? known(UNKNOWN_SIZE) : refused('its first bzip2 block is damaged')
}
