/** The variables of OVMF with one boot over HTTP in them, as a BMC leaves it for the firmware (Redfish's `HttpBootUri`). */
import { readFile } from 'node:fs/promises'

const EMPTY = '/usr/share/OVMF/OVMF_VARS_4M.fd'

/** The first one lies behind the header of the volume (0x48) and that of the store (28 bytes). */
const FIRST_VARIABLE = 0x64
/** EFI_GLOBAL_VARIABLE. */
const GLOBAL = Buffer.from('61dfe48bca93d211aa0d00e098032b8c', 'hex')
/** Non-volatile, for boot services and at run time. */
const ATTRIBUTES = 7
const ADDED = 0x3f
const OPTION = 0x42

/** Renders the content of OVMF's second flash: `url` is booted next, once; null: what OVMF boots anyway. Needs ovmf. */
export async function renderFirmwareVariables(url: string | null): Promise<Buffer> {
  const flash = await readFile(EMPTY)
  if (url === null) return flash
  const next = Buffer.alloc(2)
  next.writeUInt16LE(OPTION)
  const option = renderVariable(`Boot${OPTION.toString(16).padStart(4, '0')}`, renderOption(url))
  Buffer.concat([option, renderVariable('BootNext', next)]).copy(flash, FIRST_VARIABLE)
  return flash
}

/** An EFI_LOAD_OPTION with the short form of an address: any network card may fetch it. */
function renderOption(url: string): Buffer {
  const node = Buffer.concat([Buffer.from([3, 24, 0, 0]), Buffer.from(url, 'latin1')])
  node.writeUInt16LE(node.length, 2)
  const path = Buffer.concat([node, Buffer.from([0x7f, 0xff, 4, 0])])
  const head = Buffer.alloc(6)
  head.writeUInt32LE(1, 0)
  head.writeUInt16LE(path.length, 4)
  return Buffer.concat([head, renderName('BMC'), path])
}

/** An AUTHENTICATED_VARIABLE_HEADER, the name and the data, filled up to four bytes. */
function renderVariable(name: string, data: Buffer): Buffer {
  const header = Buffer.alloc(60)
  header.writeUInt16LE(0x55aa, 0)
  header.writeUInt8(ADDED, 2)
  header.writeUInt32LE(ATTRIBUTES, 4)
  const text = renderName(name)
  header.writeUInt32LE(text.length, 36)
  header.writeUInt32LE(data.length, 40)
  GLOBAL.copy(header, 44)
  const bytes = Buffer.concat([header, text, data])
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3, 0xff)])
}

const renderName = (text: string) => Buffer.from(`${text}\0`, 'utf16le')
