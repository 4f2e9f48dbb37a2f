/** Load: several machines that fetch one large file at the same time. */
import type { Load } from './server-load.ts'
import { startStopwatch } from './server-stopwatch.ts'
import { createWire, renderRequest } from './server-wire.ts'

export interface StreamsJob {
  readonly kind: 'streams'
  readonly port: number
  readonly pid: number
  readonly streams: number
  readonly path: string
  /** What each must get. */
  readonly bytes: number
}

const BUFFER_BYTES = 256 * 1024

export async function runStreams(job: StreamsJob): Promise<Load> {
  const { port, pid, path, streams } = job
  const wires = Array.from({ length: streams }, () =>
    createWire({ port, bufferBytes: BUFFER_BYTES }),
  )
  // Once before: the file is in the page cache, the code compiled.
  const request = renderRequest({ path })
  await wires[0]?.ask(request)
  const watch = startStopwatch(pid)
  await Promise.all(
    wires.map(async (wire) => {
      const answer = await wire.ask(request)
      watch.note(answer, answer.status === 200 && answer.bytes === job.bytes)
    }),
  )
  const load = watch.stop()
  for (const wire of wires) wire.close()
  return load
}
