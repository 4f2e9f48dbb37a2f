/** Which program of this host has a UDP port that the proxy needs, by the words of `ss -lunpH`. */
import { printable } from '#kit/foundation/printable.ts'

export const PROXY_PORTS = { dhcp: 67, pxe: 4011, tftp: 69 } as const

interface PortHolder {
  /** `dnsmasq (process 812)`; the unit may not look into processes. */
  readonly words: string
}

interface OwnCard {
  readonly device: string
  readonly address: string
}

/** Null: the port is free on these cards. A socket on another card or address is in nobody's way. */
export function findHolder(
  listing: string,
  port: number,
  own: readonly OwnCard[],
): PortHolder | null {
  const rows = listing.split('\n').slice(0, 5000).map(parseRow)
  const row = rows.find((one) => one.port === port && isInWay(one, own))
  if (row === undefined) return null
  const [, name = UNKNOWN, pid] = /"([^"]{1,60})",pid=(\d+)/.exec(row.users) ?? []
  return { words: pid === undefined ? name : `${printable(name)} (process ${pid})` }
}

function parseRow(row: string) {
  const [, , , local = '', , users = ''] = row.split(/\s+/)
  const [, host = '', device = null, port] = /^(.*?)(?:%([^:\]]+))?:(\d+)$/.exec(local) ?? []
  return { host, device, port: Number(port), users }
}

const UNKNOWN = 'another program (as root, "ss -lunp" names it)'
const EVERYWHERE = ['*', '0.0.0.0', '[::]']

const isInWay = ({ host, device }: ReturnType<typeof parseRow>, own: readonly OwnCard[]) =>
  (device === null || own.some((one) => one.device === device)) &&
  (EVERYWHERE.includes(host) || own.some((one) => one.address === host))
