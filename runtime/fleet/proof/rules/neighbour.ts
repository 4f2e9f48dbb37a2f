/** Reads the kernel's table of neighbours, and decides whose call it is that came from an address. */
import { parseMac } from '../../../kit/net/rules/mac.ts'
import type { MachineBase } from '../../../engine/inventory/rules/machine.ts'
import { epochOf } from '../../../kit/foundation/instants.ts'

/** Whether a neighbour answers is bit 1 of its flags (`ATF_COM` of linux/if_arp.h). */
const ANSWERS = 0x2

/**
 * Parses `/proc/net/arp`: the MAC addresses of those that answer, and null for those that do not, by
 * their IPv4 addresses.
 */
export function parseNeighbours(table: string): ReadonlyMap<string, string | null> {
  const rows = table.split('\n').slice(1)
  return new Map(
    rows.flatMap((row) => {
      const [ip = '', , flags = '', hardware = ''] = row.trim().split(/\s+/)
      const mac = parseMac(hardware)
      if (ip === '') return []
      const answers = (Number.parseInt(flags, 16) & ANSWERS) !== 0
      return [[ip, answers && mac.ok ? mac.value : null] as const]
    }),
  )
}

/** Why a machine's network card counts as one that answers at its address; null: nobody can tell. */
export const decideAnswer = (
  { mac, last_seen_ip: ip }: Pick<MachineBase, 'mac' | 'last_seen_ip'>,
  neighbours: ReadonlyMap<string, string | null>,
): boolean | null => {
  const found = ip === null ? undefined : neighbours.get(ip)
  return found === undefined ? null : found === mac
}

interface Call {
  readonly mac: string
  /** Where it came from; null: nobody knows. */
  readonly ip: string | null
  /** When the flash ended (ISO 8601). */
  readonly since: string
}

/**
 * Lists the other machines that are known and may have made a call: by the hardware address of its
 * neighbour, or because one used the address after the flash.
 */
export function listOthers(
  { mac, ip, since }: Call,
  neighbours: ReadonlyMap<string, string | null>,
  machines: readonly Pick<MachineBase, 'mac' | 'last_seen_ip' | 'last_seen_at'>[],
): readonly string[] {
  if (ip === null) return []
  const hardware = neighbours.get(ip) ?? null
  if (hardware === mac) return []
  const sharing = machines.filter((each) => each.last_seen_ip === ip)
  // They all have its address behind one router or proxy.
  if (sharing.some((each) => each.mac === mac)) return []
  const isLater = ({ last_seen_at: at }: (typeof machines)[number]) =>
    at !== null && epochOf(at) >= epochOf(since)
  return [...machines.filter((each) => each.mac === hardware), ...sharing.filter(isLater)].map(
    (each) => each.mac,
  )
}

/** Whether all of these are network cards of the machine whose hardware this is (JSON): a machine with two cards may have two records. */
export const areOwnCards = (macs: readonly string[], hardware: string | null): boolean => {
  const text = hardware?.toLowerCase() ?? ''
  return macs.every((mac) => text.includes(mac))
}
