/** Watches a machine from the start of its kernel to the wizard's prompt. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { Qemu } from '#test/support/vm/qemu.ts'
import { readPeakMib } from '../process-tree.ts'

export interface Watched {
  /** Both times count from the moment at which the kernel began. */
  readonly rootSeconds: number
  readonly promptSeconds: number
  /** What QEMU took at most, up to the prompt. */
  readonly peakMib: number
  /** `MemAvailable` at the prompt. */
  readonly freeMib: number
}

/** Tells how much memory is free in the machine, without a program of ours in it. */
export const BALLOON = [
  '-device',
  'virtio-balloon-pci,id=balloon,guest-stats-polling-interval=1',
] as const

/** Seconds, for a machine whose processors others use as well. */
export const PATIENCE = 400
/** What the wizard's first screen shows: the catalogs, or the images. */
const PROMPT = /Where do the images come from|> Image: /
/** The kernel's age in seconds is in it. */
export const KERNEL_LINE: RegExp = /\[ *(\d+\.\d+)\] Run \/init as init process/
const StatsSchema = z.object({
  'last-update': z.number(),
  stats: z.object({ 'stat-available-memory': z.number() }),
})

/** The machine needs `BALLOON`. `root`: what it says when its root is mounted. */
export async function watchBoot(machine: Qemu, root: RegExp): Promise<Watched> {
  const said = await machine.waitFor(KERNEL_LINE, PATIENCE)
  const age = Number(KERNEL_LINE.exec(said)?.[1])
  const start = performance.now() - age * 1000
  const since = () => (performance.now() - start) / 1000
  await machine.waitFor(root, PATIENCE)
  const rootSeconds = since()
  await machine.waitFor(PROMPT, PATIENCE)
  const promptSeconds = since()
  const peakMib = readPeakMib(machine.pid)
  return { rootSeconds, promptSeconds, peakMib, freeMib: await readFree(machine) }
}

/** Returns the free memory in MiB that the guest's driver reports first after now. */
async function readFree({ monitor }: Qemu): Promise<number> {
  const place = { path: '/machine/peripheral/balloon', property: 'guest-stats' }
  const now = Math.ceil(Date.now() / 1000)
  for (let tries = 0; tries < PATIENCE; tries += 1) {
    const { 'last-update': at, stats } = StatsSchema.parse(await monitor.execute('qom-get', place))
    if (at > now) return stats['stat-available-memory'] / 2 ** 20
    await sleep(500)
  }
  throw new Error('the machine never told how much memory is free')
}
