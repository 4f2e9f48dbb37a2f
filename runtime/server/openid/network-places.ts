/** Places for what strangers can have the server do: so many for each network, so that one leaves some to the others. */
import { networkOf } from '../../kit/web/access/rules/login-throttle.ts'

/** Creates the places. */
export function createNetworkPlaces(max: number) {
  const taken = new Map<string, number>()

  return {
    /** Does the work in a place of the network of `ip`; null: all of them are taken. */
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
