/** What our dnsmasq's log says of machines: who asked, what they were told, and what they loaded. Bounded, whoever asks. */
import { epochOf } from '#kit/foundation/instants.ts'
import { printable } from '#kit/foundation/printable.ts'
import { PROBE_MAC } from './dhcp-packet.ts'

export interface HeardClient {
  readonly mac: string
  /** Number of its firmware's architecture (RFC 4578); null: it named none. */
  readonly arch: number | null
  readonly isIpxe: boolean
  /** Null: it has none yet, or none was seen. */
  readonly address: string | null
  /** ISO time of its last question. */
  readonly askedAt: string
  /** A file by TFTP, or an address; null: it has been offered a menu and has not chosen yet. */
  readonly file: string | null
  /** The last file that it loaded, and when; null: none. */
  readonly loaded: { readonly file: string; readonly at: string } | null
  /** The last file that TFTP did not deliver, and why; null: none since it asked. */
  readonly failed: { readonly file: string; readonly why: string } | null
}

export interface Hearing {
  /** Those that asked last come last. */
  readonly clients: readonly HeardClient[]
  /** The question whose lines are being read. */
  readonly open: { readonly id: string; readonly vendor: string; readonly isIpxe: boolean }
  readonly mac: string | null
}

export const MAX_CLIENTS = 100
const MAX_WORDS = 200

const NOTHING_OPEN = { id: '', vendor: '', isIpxe: false } as const

export const NOTHING_HEARD: Hearing = { clients: [], open: NOTHING_OPEN, mac: null }

const DHCP = /^dnsmasq-dhcp\[\d+\]: (\d{1,10}) (.+)$/
const TFTP = /^dnsmasq-tftp\[\d+\]: (.+)$/
const CLIENT = /^PXE\([^)]*\) (?:([\d.]{7,15}) )?((?:[0-9a-f]{2}:){5}[0-9a-f]{2}) /
const ARCH = /^(?:PXE|HTTP)Client:Arch:(\d{5})/
const SENT = /^sent (.+) to ([\d.]{7,15})$/
const LOST = /^(?:file (.+) not found|failed sending (.+)) (?:for|to) ([\d.]{7,15})$/

/** `macOf`: who has an address now, by the kernel's list of neighbours. */
export function hear(
  before: Hearing,
  line: string,
  at: string,
  macOf: (address: string) => string | null,
): Hearing {
  const [, id = '', words = ''] = DHCP.exec(line) ?? []
  if (id !== '') return hearQuestion(before, id, words, at)
  const [, said = ''] = TFTP.exec(line) ?? []
  return said === '' ? before : hearTransfer(before, said, at, macOf)
}

/** A machine's own words stand behind fixed ones, and never begin a line. */
function hearQuestion(before: Hearing, id: string, words: string, at: string): Hearing {
  const isNew = before.open.id !== id || words.startsWith('available DHCP subnet: ')
  const now = isNew ? { ...before, open: { ...NOTHING_OPEN, id }, mac: null } : before
  const [, head, said = ''] = /^([a-z ]+): (.*)$/.exec(words) ?? []
  if (head === 'vendor class') return { ...now, open: { ...now.open, vendor: cut(said) } }
  if (words === 'user class: iPXE') return { ...now, open: { ...now.open, isIpxe: true } }
  if (head === 'bootfile name') return change(now, now.mac ?? '', { file: cut(said) })
  return enter(now, words, at)
}

const NOTHING_KNOWN = { address: null, loaded: null } as const

/** The machine is the newest then; the oldest makes room. */
function enter(now: Hearing, words: string, at: string): Hearing {
  const [, address = null, mac = PROBE_MAC] = CLIENT.exec(words) ?? []
  if (mac === PROBE_MAC) return now
  const arch = ARCH.exec(now.open.vendor)?.[1]
  const known = now.clients.find((one) => one.mac === mac) ?? NOTHING_KNOWN
  const client: HeardClient = {
    mac,
    arch: arch === undefined ? null : Number(arch),
    isIpxe: now.open.isIpxe,
    address: address ?? known.address,
    askedAt: at,
    file: null,
    loaded: known.loaded,
    failed: null,
  }
  const others = now.clients.filter((one) => one.mac !== mac)
  return { ...now, mac, clients: [...others, client].slice(-MAX_CLIENTS) }
}

function hearTransfer(
  before: Hearing,
  said: string,
  at: string,
  macOf: (address: string) => string | null,
): Hearing {
  const [, sent, receiver] = SENT.exec(said) ?? []
  const [, absent, broken, from] = LOST.exec(said) ?? []
  const address = receiver ?? from
  if (address === undefined) return before
  const holder = macOf(address)
  const client = before.clients.findLast((one) => one.mac === holder || one.address === address)
  if (client === undefined) return before
  if (sent !== undefined) {
    const loaded = { file: nameOf(sent), at }
    return change(before, client.mac, { address, loaded, failed: null })
  }
  // Boot loaders look for files that need not be there.
  if (hasLoaded(client)) return before
  const failed =
    absent === undefined
      ? { file: nameOf(broken ?? ''), why: 'the transfer broke off' }
      : { file: nameOf(absent), why: 'this server does not have it' }
  return change(before, client.mac, { address, failed })
}

const hasLoaded = ({ loaded, askedAt }: HeardClient) => loaded !== null && loaded.at >= askedAt

const change = (hearing: Hearing, mac: string, changes: Partial<HeardClient>): Hearing => ({
  ...hearing,
  clients: hearing.clients.map((one) => (one.mac === mac ? { ...one, ...changes } : one)),
})

const cut = (text: string) => printable(text.slice(0, MAX_WORDS)).slice(0, MAX_WORDS)
const nameOf = (path: string) => cut(path.slice(path.lastIndexOf('/') + 1))

/** Of `/proc/net/arp`. */
export function findNeighbour(table: string, address: string): string | null {
  for (const line of table.split('\n')) {
    const [own, , , mac = ''] = line.split(/\s+/)
    if (own === address && /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(mac)) return mac
  }
  return null
}

const ARCHS: Readonly<Record<number, string>> = {
  0: 'BIOS',
  6: 'UEFI x86, 32-bit',
  7: 'UEFI x64',
  9: 'UEFI x64',
  11: 'UEFI arm64',
  15: 'HTTP Boot x86, 32-bit',
  16: 'HTTP Boot x64',
  19: 'HTTP Boot arm64',
}

export const describeArch = ({ arch, isIpxe }: Pick<HeardClient, 'arch' | 'isIpxe'>): string => {
  const words = arch === null ? 'unknown firmware' : (ARCHS[arch] ?? `architecture ${arch}`)
  return isIpxe ? `iPXE, ${words}` : words
}

/** From here on a machine that fetches nothing is worth a word, in milliseconds. */
const PATIENCE_MS = 20_000

interface ClientStory {
  readonly tone: 'done' | 'ready' | 'needs-you'
  readonly text: string
}

interface StoryFacts {
  /** ISO time when it last asked flasher-web for its script; null: never. */
  readonly scriptAt: string | null
  readonly now: Date
  /** Who else names a boot file in its network, in words; null: nobody. */
  readonly rival: string | null
}

export function describeClient(
  client: HeardClient,
  { scriptAt, now, rival }: StoryFacts,
): ClientStory {
  const { askedAt, loaded, failed, arch } = client
  const got = gotOf(client)
  if (scriptAt !== null && scriptAt >= askedAt)
    return { tone: 'done', text: `${got}, asked for its script` }
  if (arch !== null && !(arch in ARCHS)) return stuck('No boot file fits this firmware.')
  if (failed !== null) return stuck(`Did not get ${failed.file} by TFTP: ${failed.why}.`)
  const isEarly = now.getTime() - epochOf(askedAt) < PATIENCE_MS
  if (isEarly)
    return {
      tone: 'ready',
      text: hasLoaded(client) ? `${got}, fetched ${loaded?.file}` : got,
    }
  return stuck(explainSilence(client, rival))
}

const stuck = (text: string): ClientStory => ({ tone: 'needs-you', text })

function explainSilence(client: HeardClient, rival: string | null): string {
  const { file, loaded } = client
  const [got, noScript] = [gotOf(client), 'asked for no script. Can it reach the HTTP port?']
  if (loaded !== null && hasLoaded(client)) {
    // Firmware fetches it, then refuses it.
    const advice = loaded.file.startsWith('ipxe') ? ` ${SECURE_BOOT}` : ''
    return `${got}, fetched ${loaded.file}, ${noScript}${advice}`
  }
  if (rival !== null) return `${got}, but fetched nothing here: ${rival}.`
  if (file === null) return `${got}, and asked no further. A firewall may block UDP port 4011.`
  return file.startsWith('http')
    ? `${got}, ${noScript}`
    : `${got}, but no TFTP request came. A firewall may block UDP port 69.`
}

const SECURE_BOOT = 'Is Secure Boot on, which refuses iPXE? Turn it off, or use UEFI HTTP Boot.'

const gotOf = ({ file }: HeardClient) => (file === null ? 'was offered a menu' : `got ${file}`)
