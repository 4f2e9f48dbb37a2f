/** The packet of Wake-on-LAN: six bytes of ones, then the MAC sixteen times. */
import type { Mac } from '../../../kit/net/rules/mac.ts'

export function renderMagicPacket(mac: Mac): Buffer {
  const address = Buffer.from(mac.replaceAll(':', ''), 'hex')
  return Buffer.concat([Buffer.alloc(6, 0xff), ...Array<Buffer>(16).fill(address)])
}
