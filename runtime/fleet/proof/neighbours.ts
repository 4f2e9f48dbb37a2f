/** Asks the kernel which machines answer in the networks of this host. */
import { createSocket } from 'node:dgram'
import { readFile } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { parseNeighbours } from './rules/neighbour.ts'

const TABLE = '/proc/net/arp'
/** Nobody listens there (discard): the kernel only looks for the neighbour. */
const PORT = 9
/** How long the kernel is given to ask, milliseconds. */
const ASK_MS = 1500

/** Lists the neighbours of this host, as `parseNeighbours` says; empty where they cannot be read. */
export async function listNeighbours(): Promise<ReadonlyMap<string, string | null>> {
  return parseNeighbours(await readFile(TABLE, 'latin1').catch(() => ''))
}

/** The same, after the kernel was made to look for these addresses. */
export async function askNeighbours(
  addresses: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  const socket = createSocket('udp4')
  const { promise, resolve } = Promise.withResolvers<void>()
  // An address that cannot be reached is no neighbour, and shows as none.
  socket.on('error', () => undefined)
  const send = (address: string) =>
    new Promise<void>((done) => {
      socket.send(new Uint8Array(1), PORT, address, () => done())
    })
  await Promise.all(addresses.filter(isIPv4).map(send))
  setTimeout(resolve, ASK_MS).unref()
  await promise
  socket.close()
  return await listNeighbours()
}
