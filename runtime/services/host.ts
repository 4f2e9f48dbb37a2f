/** This host as machines on its networks see it. */
import { hostname, networkInterfaces } from 'node:os'

export interface LanAddress {
  /** `eth0`. */
  readonly device: string
  readonly address: string
  /** Bits of the network's part. */
  readonly prefix: number
  readonly family: 4 | 6
}

/** Addresses that other hosts can use, IPv4 first; none of containers' bridges inside this host. */
export function listLanAddresses(): readonly LanAddress[] {
  const found = Object.entries(networkInterfaces()).flatMap(([device, list = []]) =>
    list.flatMap(({ address, cidr, family, internal }): readonly LanAddress[] => {
      if (internal || INNER.test(device) || LINK_LOCAL.test(address)) return []
      const prefix = Number(cidr?.split('/')[1] ?? Number.NaN)
      if (!Number.isInteger(prefix)) return []
      return [{ device, address, prefix, family: family === 'IPv6' ? 6 : 4 }]
    }),
  )
  return found.toSorted((one, two) => one.family - two.family)
}

export const readHostName = (): string => hostname()

const INNER = /^(docker|veth|br-[0-9a-f]{12}|cni|podman|virbr|lxcbr|lxdbr)/
const LINK_LOCAL = /^(fe80:|169\.254\.)/i
