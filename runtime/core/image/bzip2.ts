/** bzip2 as it lies in a file: its header; the size of what it holds is nowhere in it. */
import { accept, refuse, type Result } from '../foundation/result.ts'

type Bzip2Refusal =
  | { readonly why: 'not-bzip2' }
  /** The header is right, but no block follows. */
  | { readonly why: 'no-block' }
  | { readonly why: 'cut-off' }

interface Bzip2Header {
  /** 1 to 9: what a block holds at most, in units of 100,000 bytes. */
  readonly level: number
}

const BLOCK = Buffer.from('314159265359', 'hex')
const END_OF_STREAM = Buffer.from('177245385090', 'hex')

/** Reads the stream header and the mark of what follows it, 10 bytes. */
export function parseBzip2Header(head: Buffer): Result<Bzip2Header, Bzip2Refusal> {
  if (head.length < 10) return refuse({ why: 'cut-off' })
  const [, level] = /^BZh([1-9])/.exec(head.toString('latin1', 0, 4)) ?? []
  if (level === undefined) return refuse({ why: 'not-bzip2' })
  const mark = head.subarray(4, 10)
  const isKnown = mark.equals(BLOCK) || mark.equals(END_OF_STREAM)
  return isKnown ? accept({ level: Number(level) }) : refuse({ why: 'no-block' })
}

const MESSAGES: Readonly<Record<Bzip2Refusal['why'], string>> = {
  'not-bzip2': 'no bzip2 data in it',
  'no-block': 'its first bzip2 block is damaged',
  'cut-off': 'it ends within the first bytes of its bzip2 data',
}

/** What is wrong, as a clause to stand after the image's name. */
export const renderBzip2Refusal = ({ why }: Bzip2Refusal): string => MESSAGES[why]
