/** A question of a network card's firmware, and the answers of the DHCP servers that hear it (RFC 2131, RFC 4578). */
import { printable } from '#kit/foundation/printable.ts'

/** Locally administered; servers keep an address for it for a minute. */
export const PROBE_MAC = '02:66:6c:61:73:68'

export interface DhcpAnswer {
  /** Of the server. */
  readonly by: string
  /** It gives out an address; else it is a proxy. */
  readonly assigns: boolean
  /** Null: it names none. */
  readonly file: string | null
}

const MAGIC = Buffer.from([0x63, 0x82, 0x53, 0x63])
const OPTIONS_AT = 240
const DISCOVER = 1
const OFFER = 2
const CODE = { type: 53, parameters: 55, server: 54, vendor: 60, file: 67, arch: 93 } as const

const option = (code: number, bytes: Iterable<number>) => {
  const given = Buffer.from([...bytes])
  return Buffer.concat([Buffer.from([code, given.length]), given])
}

/** As UEFI firmware asks by IPv4, with an answer by broadcast. */
export function renderDiscover(id: number): Buffer {
  const head = Buffer.alloc(OPTIONS_AT)
  head.set([1, 1, 6, 0])
  head.writeUInt32BE(id, 4)
  head.writeUInt16BE(0x8000, 10)
  head.set(Buffer.from(PROBE_MAC.replaceAll(':', ''), 'hex'), 28)
  head.set(MAGIC, OPTIONS_AT - MAGIC.length)
  return Buffer.concat([
    head,
    option(CODE.type, [DISCOVER]),
    option(CODE.parameters, [1, 3, 43, 54, 60, 66, 67]),
    option(CODE.vendor, Buffer.from('PXEClient:Arch:00007:UNDI:003016')),
    option(CODE.arch, [0, 7]),
    option(94, [1, 3, 16]),
    option(97, Buffer.alloc(17)),
    Buffer.from([255]),
  ])
}

/** Null: no offer to this question. */
export function parseOffer(packet: Buffer, id: number): DhcpAnswer | null {
  if (!isAnswerTo(packet, id)) return null
  const options = readOptions(packet.subarray(OPTIONS_AT))
  const server = options.get(CODE.server)
  if (options.get(CODE.type)?.[0] !== OFFER || server?.length !== 4) return null
  const name = textOf(packet.subarray(108, 236)) || textOf(options.get(CODE.file))
  return {
    by: [...server].join('.'),
    assigns: packet.readUInt32BE(16) !== 0,
    file: name === '' ? null : name,
  }
}

const isAnswerTo = (packet: Buffer, id: number) =>
  packet.length >= OPTIONS_AT + 3 &&
  packet[0] === 2 &&
  packet.readUInt32BE(4) === id &&
  packet.subarray(OPTIONS_AT - MAGIC.length, OPTIONS_AT).equals(MAGIC)

function readOptions(bytes: Buffer): ReadonlyMap<number, Buffer> {
  const options = new Map<number, Buffer>()
  for (let at = 0; at < bytes.length && bytes[at] !== 255;) {
    const length = bytes[at] === 0 ? -1 : (bytes[at + 1] ?? 0)
    if (length >= 0) options.set(bytes[at] ?? 0, bytes.subarray(at + 2, at + 2 + length))
    at += length + 2
  }
  return options
}

const textOf = (bytes: Buffer = Buffer.alloc(0)) =>
  printable(bytes.toString('latin1').replace(/\0.*$/s, '')).slice(0, 200)
