/** The machine that a request's path names. */
import { getRouterParam, type H3Event } from 'h3'
import { parseMac, type Mac } from '../../core/machine/mac.ts'
import { refuse } from './faults.ts'

/** Throws a 400 for anything that is no MAC address. */
export function readMac(event: H3Event): Mac {
  const mac = parseMac(getRouterParam(event, 'mac', { decode: true }) ?? '')
  if (!mac.ok) throw refuse(400, 'not a MAC address', { hint: 'Six pairs of hexadecimal digits.' })
  return mac.value
}
