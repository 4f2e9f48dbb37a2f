/** Flashes that must fail, onto a disk with another system's content: it stays untouched, or is left blank. */
import type { Fault } from '#kit/foundation/fault.ts'
import { faultOf } from '../collect.ts'
import { createLoop } from './loop.ts'
import { assertBlank, flash, makeStale, readDisk, type FlashOrder } from './writer.ts'

interface RefusedFlash {
  readonly fault: Fault
  readonly isUntouched: boolean
}

export async function flashRefused(
  megabytes: number,
  order: Omit<FlashOrder, 'device'>,
): Promise<RefusedFlash> {
  await using loop = await createLoop({ megabytes })
  const { device } = loop
  const stale = await makeStale(device)
  const fault = await faultOf(() => flash({ device, ...order }))
  const isUntouched = (await readDisk(device)).equals(stale)
  if (!isUntouched) await assertBlank(device)
  return { fault, isUntouched }
}
