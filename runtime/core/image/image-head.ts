/** Checks an image's first decoded MiB: whether it is a disk image, and for which sector size. */
import { parseTableSector } from '../disk/gpt.ts'
import { renderCoding, type Sent } from '../content/sent.ts'
import { detectContent } from './image.ts'
import { accept, refuse, type Result } from '../foundation/result.ts'

interface HeadOptions {
  /** Somebody said that it is written whatever it looks like. */
  readonly anyContent?: boolean | undefined
  readonly sent?: Sent | undefined
}

/** The refusal is a sentence with a hint. */
export function checkHead(
  name: string,
  head: Buffer,
  sectorBytes: number,
  { anyContent = false, sent }: HeadOptions = {},
): Result<null, string> {
  if (head.length === 0) return refuse(`${name} is empty`)
  const content = anyContent ? 'raw' : detectContent(head)
  if (content === 'tar') return refuse(`${name} holds a tarball: extract first`)
  const way = sent?.coding ? renderCoding(sent.coding) : 'extract it first'
  if (content !== 'raw') return refuse(`${name} holds ${content} data inside: ${way}`)
  return checkSectors(name, head, sectorBytes)
}

function checkSectors(name: string, head: Buffer, sectorBytes: number): Result<null, string> {
  const tableSector = parseTableSector(head)
  return tableSector === null || tableSector === sectorBytes
    ? accept(null)
    : refuse(
        `${name} is made for disks with ${tableSector}-byte sectors, but this disk has ${sectorBytes}-byte sectors`,
      )
}
