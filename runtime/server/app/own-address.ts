/** Finds how the other servers on a database reach this one, where no setting says it. */
import { createSocket } from 'node:dgram'
import { isIP } from 'node:net'
import { listLanAddresses } from '../../fleet/boot/host-addresses.ts'

interface OwnAddressOptions {
  /** The address of the database, `postgres://…`. */
  readonly database: string
  /** Where this server listens. */
  readonly host: string
  readonly port: number
  readonly isTls: boolean
}

/**
 * Returns the address without a slash at its end: that on which the server listens, or where it listens
 * on all of them, the one by which this host reaches the database.
 */
export async function findOwnUrl({
  database,
  host,
  port,
  isTls,
}: OwnAddressOptions): Promise<string> {
  const isAny = host === '0.0.0.0' || host === '::'
  const own = isAny ? await findLocalAddress(database) : host
  const name = isIP(own) === 6 ? `[${own}]` : own
  return `${isTls ? 'https' : 'http'}://${name}:${port}`
}

/** Where the database is on this host, the others come to it over the network. */
async function findLocalAddress(database: string): Promise<string> {
  const { hostname = '' } = URL.parse(database) ?? {}
  const address = await routeTo(hostname.replace(/^\[|\]$/g, ''))
  if (address !== null && !LOOPBACK.test(address)) return address
  return listLanAddresses()[0]?.address ?? '127.0.0.1'
}

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/

/** Nothing is sent: the system says by which of its addresses it would go. Null: by none. */
function routeTo(host: string): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  if (host === '') return Promise.resolve(null)
  const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4')
  const end = (address: string | null) => {
    socket.close()
    resolve(address)
  }
  socket.once('error', () => end(null))
  socket.connect(ANY_PORT, host, () => end(socket.address().address))
  return promise
}

const ANY_PORT = 9
