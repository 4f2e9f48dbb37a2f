/** Limits what strangers can have the server do at the same time, by network, so that one leaves something to the others. */
import { networkOf } from '#kit/web/access/rules/login-throttle.ts'

export function createNetworkLimit(max: number) {
  const taken = new Map<string, number>()

  return {
    /** Null: the network of `ip` is at its limit. */
    async run<T>(ip: string | null, work: () => Promise<T>): Promise<T | null> {
      const network = networkOf(ip)
      const count = taken.get(network) ?? 0
      if (count >= max) return null
      taken.set(network, count + 1)
      try {
        return await work()
      } finally {
        const left = (taken.get(network) ?? 1) - 1
        if (left === 0) taken.delete(network)
        else taken.set(network, left)
      }
    },
  }
}
