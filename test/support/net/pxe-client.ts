/** Run in a namespace: asks as a network card's firmware does, and prints what it was offered as JSON. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

const [arch = '0', who = 'firmware'] = process.argv.slice(2)
const MAC = Buffer.from('525400123456', 'hex')
const OWN = Buffer.from([192, 168, 98, 50])
const DISCOVER = 1
const REQUEST = 3
const MENU = 9
const ITEM = 71
const TRIES = 20

const option = (code: number, bytes: Buffer) =>
  Buffer.concat([Buffer.from([code, bytes.length]), bytes])

/** UEFI HTTP Boot is `http`. `item`: what the second question asks for, by the menu of the first answer; UEFI has none. */
function render(type: number, item: Buffer | null = null): Buffer {
  const head = Buffer.alloc(240)
  head.set([1, 1, 6, 0, 0x12, 0x34, 0x56, 0x78])
  // The first answer comes as a broadcast: the machine has no address yet.
  if (type === DISCOVER) head.writeUInt16BE(0x8000, 10)
  else head.set(OWN, 12)
  head.set(MAC, 28)
  head.set([0x63, 0x82, 0x53, 0x63], 236)
  return Buffer.concat([
    head,
    option(53, Buffer.from([type])),
    option(55, Buffer.from([1, 3, 43, 60, 66, 67])),
    option(
      60,
      Buffer.from(
        `${who === 'http' ? 'HTTP' : 'PXE'}Client:Arch:${arch.padStart(5, '0')}:UNDI:002001`,
      ),
    ),
    option(93, Buffer.from([0, Number(arch)])),
    option(94, Buffer.from([1, 2, 1])),
    option(97, Buffer.alloc(17)),
    ...(who === 'ipxe' ? [option(77, Buffer.from('iPXE'))] : []),
    ...(item === null ? [] : [option(43, option(ITEM, Buffer.concat([item, Buffer.alloc(2)])))]),
    Buffer.from([255]),
  ])
}

function readOptions(bytes: Buffer): ReadonlyMap<number, Buffer> {
  const options = new Map<number, Buffer>()
  let at = 0
  while (at < bytes.length && bytes[at] !== 255) {
    const length = bytes[at + 1] ?? 0
    if (bytes[at] !== 0) options.set(bytes[at] ?? 0, bytes.subarray(at + 2, at + 2 + length))
    at += bytes[at] === 0 ? 1 : length + 2
  }
  return options
}

const textOf = (bytes: Buffer) => bytes.toString('latin1').replace(/\0.*$/s, '')
const addressOf = (bytes: Buffer) => [...bytes].join('.')

function parse(packet: Buffer) {
  const options = readOptions(packet.subarray(240))
  const get = (code: number) => options.get(code) ?? Buffer.alloc(0)
  return {
    type: get(53)[0],
    yours: addressOf(packet.subarray(16, 20)),
    next: addressOf(packet.subarray(20, 24)),
    by: addressOf(get(54)),
    vendor: textOf(get(60)),
    file: textOf(packet.subarray(108, 236)) || textOf(get(67)),
    menu: readOptions(get(43)).get(MENU)?.subarray(0, 2) ?? null,
  }
}

const socket = createSocket({ type: 'udp4', reuseAddr: true })
socket.bind(68)
await once(socket, 'listening')
socket.setBroadcast(true)

/** Sends a packet again and again until there is an answer; null: none came. */
async function exchange(packet: Buffer, port: number, to: string) {
  const answered = once(socket, 'message')
  for (let tries = 0; tries < TRIES; tries += 1) {
    socket.send(packet, port, to)
    const answer: unknown = await Promise.race([
      answered.then(([bytes]) => bytes),
      sleep(250, null),
    ])
    if (Buffer.isBuffer(answer)) return parse(answer)
  }
  return null
}

const offer = await exchange(render(DISCOVER), 67, '255.255.255.255')
// The file is named in a second answer, on the port of PXE.
const last =
  offer?.file === '' && who !== 'http'
    ? await exchange(render(REQUEST, offer.menu), 4011, offer.by)
    : offer
const shown =
  offer === null || last === null ? null : { ...offer, file: last.file, next: last.next }
process.stdout.write(JSON.stringify(shown, ['yours', 'next', 'by', 'vendor', 'file']))
process.exit(0)
