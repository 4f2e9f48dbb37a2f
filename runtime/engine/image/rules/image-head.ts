/** Checks an image's first bytes: whether it is what its name says, a disk image, and for which sector size. */
import { parseTableSector } from '#engine/disk/rules/tables/gpt.ts'
import { renderCoding, type Sent } from '#kit/net/rules/sent.ts'
import { isStoredRaw, detectContent, formatOfContent, type ContentMismatch } from './format.ts'
import type { ImageFacts } from './image.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export interface FittedImage {
  readonly image: ImageFacts & { readonly format: ImageFormat }
  readonly target: {
    readonly path: string
    readonly identity: { readonly sizeBytes: number }
    readonly sectorBytes: number
  }
}

interface HeadOptions {
  /** The bytes were decoded from this; absent or null: unknown. */
  readonly format?: ImageFormat | null | undefined
  /** Somebody said that it is written whatever it looks like. */
  readonly anyContent?: boolean | undefined
  readonly sent?: Sent | undefined
}

/** The refusal is a sentence with a hint. */
export function checkHead(
  name: string,
  head: Buffer,
  sectorBytes: number,
  { format, anyContent, sent }: HeadOptions = {},
): Result<null, string> {
  if (head.length === 0) return refuse(`${name} is empty`)
  // A named compression does not say that an archive inside is meant for a disk.
  const content = anyContent === true && isStoredRaw(format) ? 'raw' : detectContent(head)
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

interface Claim {
  readonly name: string
  readonly fileName?: string
  readonly sent?: Sent | undefined
}

/** One sentence with a fix: a catalog or an option can name the format as well. */
export function renderMismatch(
  { name, fileName = name, sent }: Claim,
  { format, found }: ContentMismatch,
): string {
  if (found === 'tar') return `${name} is a tarball: extract first`
  const isName = fileName.toLowerCase().endsWith(`.${format}`)
  const claim = isName ? `is named .${format}` : `is said to be of format ${format}`
  const holds = found === 'raw' ? `does not hold ${format} data` : `holds ${found} data`
  const words = `${name} ${claim} but ${holds}`
  if (sent?.coding) return `${words}: ${renderCoding(sent.coding)}`
  return found === 'raw' ? words : `${words}: ${findWay(found, isName)}`
}

function findWay(found: string, isName: boolean): string {
  const right = formatOfContent(found)
  if (right === null) return 'extract or convert it first'
  return isName ? `name it .${right}` : `say ${right}`
}
