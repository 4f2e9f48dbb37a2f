/** Wake-on-LAN: turns on, and can tell nothing of what became of it. */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { renderError } from '../../kit/foundation/fault.ts'
import { accept, refuse } from '../../kit/foundation/result.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { PowerDriver } from './driver.ts'
import type { FindAddress } from './address-check.ts'
import { splitHost, type BmcOf } from './rules/bmc.ts'
import { renderMagicPacket } from './rules/magic-packet.ts'
import { lasting, passing, quote } from './rules/power.ts'

const PORT = 9
/** A packet may be lost, and one more does no harm. */
const PACKETS = 3
const PAUSE_MS = 50

/** Creates the driver of one machine, which listens to its own MAC. */
export function createWakeDriver(
  bmc: BmcOf<'wake-on-lan'>,
  mac: Mac,
  findAddress: FindAddress,
): PowerDriver {
  const place = splitHost(bmc.address, PORT)
  return {
    abilities: { reads: false, presses: ['on'], boots: [], confirmsBoot: false },
    open: async () =>
      accept({
        readState: async () => accept('unknown'),
        async press() {
          const found = await findAddress(place)
          if (!found.ok) return found
          try {
            await sendPackets(renderMagicPacket(mac), found.value, place.port)
            return accept(null)
          } catch (thrown) {
            return refuse(passing('unreachable', quote(renderError(thrown)), CHECK))
          }
        },
        setBoot: async () => refuse(NO_BOOT),
        async [Symbol.asyncDispose]() {},
      }),
  }
}

async function sendPackets(packet: Buffer, address: string, port: number): Promise<void> {
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind(0, resolve)
    })
    if (!isIPv6(address)) socket.setBroadcast(true)
    for (let count = 0; count < PACKETS; count += 1) {
      if (count > 0) await sleep(PAUSE_MS)
      await new Promise<void>((resolve, reject) => {
        socket.send(packet, port, address, (error) => (error === null ? resolve() : reject(error)))
      })
    }
  } finally {
    socket.close()
  }
}

const NO_BOOT = lasting('unsupported', 'Wake-on-LAN sets no boot device', 'Use another way.')
const CHECK = 'Check the broadcast address, and that this host has a way to that network.'
