/** Load: some connections, each of which asks again as soon as it has its answer. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Load } from './server-load.ts'
import { startStopwatch } from './server-stopwatch.ts'
import { createWire, macOf, renderRequest } from './server-wire.ts'

export interface LoopJob {
  readonly kind: 'loop'
  readonly port: number
  /** The process id of the server. */
  readonly pid: number
  readonly connections: number
  readonly seconds: number
  /** `{mac}` stands for one of the machines. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Which machines, in turn. */
  readonly machines: { readonly first: number; readonly step: number; readonly count: number }
}

/** Not counted: compilers and caches get warm. */
const WARM_MS = 1500
/** Requests rendered beforehand where the machines are that few. */
const MAX_RENDERED = 20_000

export async function runLoop(job: LoopJob): Promise<Load> {
  const { port, connections, seconds } = job
  const next = createRequests(job)
  const wires = Array.from({ length: connections }, () => createWire({ port }))
  let watch: ReturnType<typeof startStopwatch> | null = null
  const ending = new AbortController()
  const lanes = wires.map(async (wire) => {
    while (!ending.signal.aborted) {
      const answer = await wire.ask(next())
      watch?.note(answer, answer.status === 200)
    }
    wire.close()
  })
  const load = (async () => {
    await pause(WARM_MS)
    watch = startStopwatch(job.pid)
    await pause(seconds * 1000)
    ending.abort()
    const measured = watch.stop()
    watch = null
    return measured
  })()
  const [measured] = await Promise.all([load, ...lanes])
  return measured
}

function createRequests({ path, headers, machines }: LoopJob): () => Buffer {
  const { first, step, count } = machines
  const render = (n: number) =>
    renderRequest({ path: path.replace('{mac}', macOf(first + n * step)), headers })
  let n = 0
  if (!path.includes('{mac}') || count > MAX_RENDERED) {
    const same = path.includes('{mac}') ? null : render(0)
    return () => same ?? render(n++ % count)
  }
  const rendered = Array.from({ length: count }, (_, at) => render(at))
  return () => rendered[n++ % count] ?? render(0)
}
