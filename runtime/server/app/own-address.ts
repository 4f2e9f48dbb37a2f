/** Finds how the other servers on a database reach this one, where no setting says it. */
import { createSocket } from 'node:dgram'
import { isIP } from 'node:net'
import { listLanAddresses } from '#fleet/boot/host-addresses.ts'

interface OwnAddressOptions {
  /** `postgres://…` */
  readonly database: string
  readonly host: string
  readonly port: number
  readonly isTls: boolean
}

/** Without a last slash. If it listens on all addresses: the one towards the database. */
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

/** If the database is on this host, the other servers come over the network. */
async function findLocalAddress(database: string): Promise<string> {
  const { hostname = '' } = URL.parse(database) ?? {}
  const address = await routeTo(hostname.replace(/^\[|\]$/g, ''))
  if (address !== null && !LOOPBACK.test(address)) return address
  return listLanAddresses()[0]?.address ?? '127.0.0.1'
}

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/

/** Sends nothing: asks the system for the source address of the route. Null: no route. */
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
