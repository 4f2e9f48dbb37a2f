/** A machine in QEMU whose power a BMC switches: it runs while that is on, and starts again after each restart. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Qemu } from '../vm/qemu.ts'

interface PowerSwitch {
  /** Whether the BMC has it on. */
  isOn(): boolean | Promise<boolean>
  /** One boot, from what the BMC says is next; it ends when the machine is restarted. */
  start(): Promise<Qemu>
}

const LOOK_MS = 200

export interface PoweredMachine extends AsyncDisposable {
  /** How often it has started so far. */
  boots(): number
  /** Rejects where it could not be started. */
  readonly broken: Promise<never>
}

export function powerMachine({ isOn, start }: PowerSwitch): PoweredMachine {
  const ending = new AbortController()
  let boots = 0
  async function follow(): Promise<void> {
    while (!ending.signal.aborted) {
      if (await isOn()) {
        boots += 1
        await using machine = await start()
        await runWhile(machine, async () => !ending.signal.aborted && (await isOn()))
      }
      await sleep(LOOK_MS)
    }
  }
  const followed = follow()
  const broken = followed.then(() => new Promise<never>(() => {}))
  broken.catch(() => {})
  return {
    boots: () => boots,
    broken,
    async [Symbol.asyncDispose]() {
      ending.abort()
      await followed.catch(() => {})
    },
  }
}

/** Resolves once the machine has ended by itself, or is to be cut off. */
async function runWhile(machine: Qemu, mayRun: () => Promise<boolean>): Promise<void> {
  const ended = machine.ended.then(() => true)
  while (await mayRun()) {
    if (await Promise.race([ended, sleep(LOOK_MS, false)])) return
  }
}
