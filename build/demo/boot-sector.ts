/** Boot sectors (BIOS): one that greets and calls, for the demo's image, and one that tries an accelerator. */

export const SECTOR = 512
/** What the machine says once it boots the demo's image. */
export const GREETING = 'This disk was written by flasher.'

/**
 * Greets on the screen; reads the volume behind it for the configuration that was written with the
 * image; and sends its one-time address, as a request, through the second serial port:
 *
 *            xor ax, ax; mov ds, ax; mov ss, ax; mov sp, 0x7c00; mov dh, dl; mov si, text
 *     greet: lodsb; test al, al; jz read; mov ah, 14; int 0x10; jmp greet
 *     read:  push dx; mov dl, dh; mov si, packet; mov ah, 0x42; int 0x13; pop dx; jc end
 *            mov ax, 0x1000; mov es, ax; xor di, di
 *     look:  cmp dword es:[di], '_hom'; je found; inc di; cmp di, 0x7ff0; jb look
 *            add word [packet + 8], 64; dec word [pieces]; jnz read
 *     end:   hlt; jmp end
 *     found: inc di; cmp word es:[di], '//'; jne found; inc di
 *     host:  inc di; cmp byte es:[di], '/'; jne host; mov si, before; call say
 *     path:  mov al, es:[di]; inc di; cmp al, '"'; je done; call put; jmp path
 *     done:  mov si, after; call say; jmp end
 *     put:   mov ah, al
 *     wait:  mov dx, 0x2fd; in al, dx; test al, 0x20; jz wait; mov al, ah; mov dx, 0x2f8; out dx, al; ret
 *     next:  call put
 *     say:   lodsb; test al, al; jnz next; ret
 *     pieces: dw 256
 *     packet: db 16, 0; dw 64, 0, 0x1000; dd 2048, 0
 *     before: db "POST ", 0
 *     after:  db " HTTP/1.0", 13, 10, 13, 10, 0
 *     text:
 */
const GREET_AND_CALL = [
  '31c08ed88ed0bc007c88d6beb77cac84c07406b40ecd10ebf55288f2be937cb442cd135a7223b800108ec031ff2666',
  '813d5f686f6d74154781fff07f72ef83069b7c40ff0e917c75d0f4ebfd4726813d2f2f75f8474726803d2f75f9bea3',
  '7ce82900268a05473c227405e80a00ebf3bea97ce81600ebd288c4bafd02eca82074f888e0baf802eec3e8ecffac84',
  'c075f8c3000110004000000000100008000000000000504f5354200020485454502f312e300d0a0d0a00',
].join('')
/** `mov dx, 0x501; mov al, 0x10; out dx, al`, then `hlt` for ever. */
const REPORT = 'ba0105b010eef4ebfd'

/** Where the partition table begins. */
const TABLE = 446
const ENTRY_BYTES = 16
/** What Linux is installed on: there the configuration of a first boot is written. */
const LINUX = 0x83
/** No file system that anything would look for. */
const NON_FS_DATA = 0xda
/** Where the volume begins and how long it is, as the code has it: 256 pieces of 64 sectors. */
export const VOLUME = { firstSector: 2048, sectors: 256 * 64 } as const

/**
 * Renders the sector that greets, with a table of an image of so many bytes: a volume for a
 * configuration, where there is one, and the rest.
 */
export function renderGreeter(imageBytes: number, hasVolume: boolean): Buffer {
  const sector = renderSector(GREET_AND_CALL, `\r\n\r\n  ${GREETING}\r\n\r\n`)
  const { firstSector, sectors } = VOLUME
  const rest = firstSector + (hasVolume ? sectors : 0)
  if (hasVolume) writeEntry(sector, 0, LINUX, { first: firstSector, sectors })
  const left = { first: rest, sectors: imageBytes / SECTOR - rest }
  writeEntry(sector, hasVolume ? 1 : 0, NON_FS_DATA, left)
  sector.writeUInt8(0x80, TABLE)
  return sector
}

interface Span {
  readonly first: number
  readonly sectors: number
}

function writeEntry(sector: Buffer, at: number, type: number, { first, sectors }: Span): void {
  const entry = sector.subarray(TABLE + at * ENTRY_BYTES)
  entry.fill(0xff, 1, 8)
  entry.writeUInt8(type, 4)
  entry.writeUInt32LE(first, 8)
  entry.writeUInt32LE(sectors, 12)
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
