/** Asks a network who else answers machines there: DHCP servers with their boot files, and other proxies. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { randomInt } from 'node:crypto'
import { renderError } from '#kit/foundation/fault.ts'
import { refuse, accept, type Result } from '#kit/foundation/result.ts'
import { linger } from '#kit/host/watch.ts'
import { type DhcpAnswer, parseOffer, renderDiscover } from './rules/dhcp-packet.ts'

const CLIENT_PORT = 68
const SERVER_PORT = 67
const MAX_ANSWERS = 20
/** dnsmasq pings an address for three seconds before it offers it. */
const TRIES = 3
const WAIT_MS = 2000

/** Needs root. From the card with the address `own`, whose answers are left out. Takes some seconds, unless the signal ends it. */
export async function surveyDhcp(
  own: string,
  signal: AbortSignal,
): Promise<Result<readonly DhcpAnswer[], string>> {
  const id = randomInt(2 ** 32)
  const found = new Map<string, DhcpAnswer>()
  try {
    // Answers come by broadcast, which a socket with an address does not hear; only one with an
    // address sends from its card.
    await using hearing = await openSocket('0.0.0.0')
    await using asking = await openSocket(own)
    hearing.socket.on('message', (packet) => {
      const answer = parseOffer(packet, id)
      if (answer !== null && answer.by !== own && found.size < MAX_ANSWERS)
        found.set(answer.by, answer)
    })
    asking.socket.setBroadcast(true)
    for (let tries = 0; tries < TRIES && !signal.aborted; tries += 1) {
      asking.socket.send(renderDiscover(id), SERVER_PORT, '255.255.255.255')
      await linger(WAIT_MS, signal)
    }
    return accept([...found.values()])
  } catch (thrown) {
    return refuse(renderError(thrown))
  }
}

async function openSocket(address: string): Promise<{ socket: Socket } & AsyncDisposable> {
  const socket = createSocket({ type: 'udp4', reuseAddr: true })
  const listening = once(socket, 'listening')
  socket.bind(CLIENT_PORT, address)
  await listening
  // What a network does later is no answer.
  socket.on('error', () => {})
  return {
    socket,
    [Symbol.asyncDispose]: async () => {
      socket.close()
    },
  }
}
