/** A machine whose power a BMC switches: QEMU runs while that is on. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Bmc } from './bmc.ts'
import type { Machine } from './qemu.ts'

const LOOK_MS = 100

/** The machine ends with its own words, as one without a BMC does, but not where its BMC turns it off. */
export function powerMachine(start: () => Machine, { isOn }: Pick<Bmc, 'isOn'>): Machine {
  const ending = new AbortController()
  let machine = start()
  async function follow(): Promise<string> {
    while (!ending.signal.aborted) {
      const words = await Promise.race([machine.ended, pause(LOOK_MS, null)])
      if (words !== null) return words
      if (await isOn()) continue
      await machine[Symbol.asyncDispose]()
      while (!ending.signal.aborted && !(await isOn())) await pause(LOOK_MS)
      if (!ending.signal.aborted) machine = start()
    }
    return ''
  }
  const ended = follow()
  return {
    readSerial: () => machine.readSerial(),
    restart: () => machine.restart(),
    ended,
    async [Symbol.asyncDispose]() {
      ending.abort()
      await ended
      await machine[Symbol.asyncDispose]()
    },
  }
}
