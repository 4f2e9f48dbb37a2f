/** Load: simulated machines, each from its own address, that are all switched on at once. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Load } from './server-load.ts'
import { startStopwatch, type Stopwatch } from './server-stopwatch.ts'
import { createWire, macOf, renderRequest, type Asked } from './server-wire.ts'

export interface BoxesJob {
  readonly kind: 'boxes'
  readonly port: number
  readonly pid: number
  readonly boxes: number
  /** Seconds over which they are switched on. */
  readonly within: number
  /** Names below /boot/. */
  readonly files: readonly string[]
  /** JSON text. */
  readonly inventory: string
}

export async function runBoxes(job: BoxesJob): Promise<Load> {
  const boxes = Array.from({ length: job.boxes }, (_, n) => planBox(job, n))
  const watch = startStopwatch(job.pid)
  await Promise.all(
    boxes.map(async (box, n) => {
      await pause((n / job.boxes) * job.within * 1000)
      await boot(box, job.port, watch)
    }),
  )
  return watch.stop()
}

interface Box {
  readonly from: string
  /** Requests that share a connection: those of the firmware, then those of the live system. */
  readonly phases: readonly (readonly Buffer[])[]
}

/** What the n-th machine asks for, in order. */
function planBox({ files, inventory }: BoxesJob, n: number): Box {
  const mac = macOf(n)
  const firmware: readonly Asked[] = [
    { path: '/pxe-bootstrap.ipxe' },
    { path: `/pxe/${mac.replaceAll(':', '-')}?buildarch=x86_64&platform=efi` },
    ...files.map((name) => ({ path: `/boot/${name}?mac=${mac}` })),
  ]
  const live: readonly Asked[] = [
    {
      method: 'POST',
      path: `/pxe/${mac}/inventory`,
      body: inventory.replaceAll('SERIAL-0-', `SERIAL-${n}-`),
    },
    { path: `/pxe/${mac}/plan` },
    { method: 'POST', path: `/pxe/${mac}/done` },
  ]
  return {
    from: `127.0.${1 + Math.floor(n / 250)}.${1 + (n % 250)}`,
    phases: [firmware, live].map((asked) => asked.map(renderRequest)),
  }
}

async function boot({ from, phases }: Box, port: number, watch: Stopwatch): Promise<void> {
  for (const requests of phases) {
    const wire = createWire({ port, from })
    for (const request of requests) {
      const answer = await wire.ask(request)
      watch.note(answer, answer.status === 200 || answer.status === 204)
    }
    wire.close()
  }
}
