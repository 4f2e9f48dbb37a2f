/** One flash in a lab, from the network boot to its first byte, divided by the server's stamps and the machine's own words. */
import { basename } from 'node:path'
import { z } from 'zod'
import { LAB_MAC } from '#test/support/server/lab.ts'
import { openMachine, startBootLab, waitForEnd, type PxeLab } from '#test/support/vm/pxe-flash.ts'
import type { Qemu } from '#test/support/vm/qemu.ts'
import type { MeasuredBoot } from './boot-budgets.ts'
import { HANDED_OVER } from './boot-cases.ts'
import { KERNEL_LINE, PATIENCE } from './boot-watch.ts'
import { startUndisturbedClock } from './undisturbed-clock.ts'

const ANSWERS = 20
const FIRST_WORDS = /flasher: boot system/
/** What of the waterfall begins and ends a part. */
const RunSchema = z.object({
  waterfall: z.object({
    bars: z.array(z.object({ part: z.string(), from: z.string(), to: z.string() })),
  }),
})
type Bars = z.infer<typeof RunSchema>['waterfall']['bars']

/** `image`: the path of one that the machine is flashed with. */
export async function bootInParts(image: string): Promise<MeasuredBoot> {
  await using lab = await startBootLab({ images: [image] })
  const pxe = await openMachine(lab, basename(image))
  await pxe.bind()
  const script = await timeScript(pxe)
  await using machine = await pxe.start('bios-rom')
  using clock = startUndisturbedClock(machine.pid)
  const { kernel, init, firstWords, handedOver } = await listen(machine)
  await waitForEnd(machine)
  const [{ id } = { id: '' }] = await pxe.readRuns()
  const { bars } = RunSchema.parse(await lab.ask(`/machines/${LAB_MAC}/runs/${id}`)).waterfall
  const at = (part: string, end: 'from' | 'to') => Date.parse(findBar(bars, part)[end])
  const bar = (part: string) => clock.between(at(part, 'from'), at(part, 'to'))
  return {
    yardstick: clock.between(kernel, init),
    script,
    kernel: bar('kernel'),
    initrd: clock.between(at('live', 'from'), firstWords),
    root: clock.between(firstWords, handedOver),
    live: clock.between(handedOver, at('live', 'to')),
    plan: bar('plan'),
    'first-byte': bar('started'),
  }
}

function findBar(bars: Bars, part: string) {
  const bar = bars.find((each) => each.part === part)
  if (bar !== undefined) return bar
  throw new Error(`the run has no part ${part}: ${bars.map((each) => each.part).join(', ')}`)
}

/** When it said what, in milliseconds since the epoch as the server counts them. */
async function listen(machine: Qemu) {
  const said = await machine.waitFor(KERNEL_LINE, PATIENCE)
  const init = Date.now()
  const kernel = init - Number(KERNEL_LINE.exec(said)?.[1]) * 1000
  await machine.waitFor(FIRST_WORDS, PATIENCE)
  const firstWords = Date.now()
  await machine.waitFor(HANDED_OVER, PATIENCE)
  return { kernel, init, firstWords, handedOver: Date.now() }
}

/** The least of some answers for another machine, in seconds: the first loads what the others find. */
async function timeScript({ lab }: PxeLab): Promise<number> {
  const other = `${lab.url}/pxe/52:54:00:12:34:99`
  const seconds: number[] = []
  for (let answer = 0; answer < ANSWERS; answer += 1) {
    const before = performance.now()
    await (await fetch(other)).text()
    seconds.push((performance.now() - before) / 1000)
  }
  return Math.min(...seconds)
}
