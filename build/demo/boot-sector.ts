/** Boot sectors (BIOS): one that greets, for the demo's image, and one that tries an accelerator. */

export const SECTOR = 512
/** What the machine says once it boots the demo's image. */
export const GREETING = 'This disk was written by flasher.'

/**
 *     xor ax, ax; mov ds, ax; mov si, text
 *     next: lodsb; test al, al; jz end; mov ah, 14; int 16; jmp next
 *     end: hlt; jmp end
 */
const PRINT = '31c08ed8be157cac84c07406b40ecd10ebf5f4ebfd'
/** `mov dx, 0x501; mov al, 0x10; out dx, al`, then `hlt` for ever. */
const REPORT = 'ba0105b010eef4ebfd'

/** Where the partition table begins. */
const TABLE = 446
/** No file system that anything would look for. */
const NON_FS_DATA = 0xda
const FIRST_SECTOR = 2048

/**
 * Renders the sector that greets, with a table of one partition from the first MiB to the end of an
 * image of so many bytes.
 */
export function renderGreeter(imageBytes: number): Buffer {
  const sector = renderSector(PRINT, `\r\n\r\n  ${GREETING}\r\n\r\n`)
  sector.writeUInt8(0x80, TABLE)
  sector.fill(0xff, TABLE + 1, TABLE + 8)
  sector.writeUInt8(NON_FS_DATA, TABLE + 4)
  sector.writeUInt32LE(FIRST_SECTOR, TABLE + 8)
  sector.writeUInt32LE(imageBytes / SECTOR - FIRST_SECTOR, TABLE + 12)
  return sector
}

/** Renders the sector that ends QEMU as soon as it runs. */
export const renderProbe = (): Buffer => renderSector(REPORT, '')

function renderSector(code: string, text: string): Buffer {
  const sector = Buffer.alloc(SECTOR)
  const end = sector.write(code, 'hex')
  sector.write(`${text}\0`, end, 'latin1')
  sector.writeUInt16BE(0x55aa, SECTOR - 2)
  return sector
}
