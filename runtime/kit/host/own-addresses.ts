/** The addresses of this host. */
import { networkInterfaces } from 'node:os'

export const listOwnAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address))
