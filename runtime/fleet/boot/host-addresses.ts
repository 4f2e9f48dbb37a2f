/** Lists the addresses and network cards of this host. */
import { networkInterfaces } from 'node:os'
import type { InterfaceAddress } from './rules/dhcp.ts'

/** IPv4 first; without bridges of containers on this host. */
export function listLanAddresses(): readonly InterfaceAddress[] {
  const found = listCards().flatMap(
    ({ device, address, cidr, family }): readonly InterfaceAddress[] => {
      const prefix = Number(cidr?.split('/')[1] ?? Number.NaN)
      if (LINK_LOCAL.test(address) || !Number.isInteger(prefix)) return []
      return [{ device, address, prefix, family: family === 'IPv6' ? 6 : 4 }]
    },
  )
  return found.toSorted((one, two) => one.family - two.family)
}

/** The card with this `mac`, else the first one with an address. */
export function findOwnCard(mac: string | null): {
  readonly mac: string | null
  readonly address: string | null
} {
  const own = listCards().filter((card) => mac === null || card.mac === mac)
  const reachable = own.filter(({ address }) => !LINK_LOCAL.test(address))
  const best = reachable.find(({ family }) => family === 'IPv4') ?? reachable[0] ?? own[0]
  return {
    mac: mac ?? best?.mac ?? null,
    address: reachable.length > 0 ? (best?.address ?? null) : null,
  }
}

const listCards = () =>
  Object.entries(networkInterfaces()).flatMap(([device, list = []]) =>
    list.flatMap((card) => (card.internal || INNER.test(device) ? [] : [{ device, ...card }])),
  )

const INNER = /^(docker|veth|br-[0-9a-f]{12}|cni|podman|virbr|lxcbr|lxdbr)/
const LINK_LOCAL = /^(fe80:|169\.254\.)/i
