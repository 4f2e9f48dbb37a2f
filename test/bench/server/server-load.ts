/** A process that makes load: takes one job from its parent, answers what it measured, and ends. */
import { request as openRequest } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { startStopwatch, type Stopwatch } from './server-stopwatch.ts'
import { type Asked, createWire, macOf, renderRequest } from './server-wire.ts'

interface StreamsJob {
  readonly kind: 'streams'
  readonly port: number
  readonly pid: number
  readonly streams: number
  readonly path: string
  /** What each must get. */
  readonly bytes: number
}

const BUFFER_BYTES = 256 * 1024

async function runStreams(job: StreamsJob): Promise<Load> {
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

interface PagesJob {
  readonly kind: 'pages'
  readonly port: number
  readonly pid: number
  readonly pages: number
  readonly headers: Readonly<Record<string, string>>
  /** Changes that are made, one at a time; 0: only listens, until it is stopped. */
  readonly changes: number
}

/** Between two changes, so that the channel is at rest. */
const REST_MS = 500
const PATIENCE_MS = 20_000

async function runPages(job: PagesJob): Promise<Load> {
  const watch = startStopwatch(job.pid)
  let events = 0
  const look = (text: string) => {
    events += text.split('event: machines-update').length - 1
  }
  const pages = await Promise.all(Array.from({ length: job.pages }, () => openPage(job, look)))
  process.send?.('open')
  if (job.changes === 0) {
    await new Promise((resolve) => {
      process.once('message', resolve)
    })
  }
  const wire = createWire({ port: job.port })
  for (let change = 0; change < job.changes; change += 1) {
    await pause(REST_MS)
    const label = `change-${change}`
    const startedAt = performance.now()
    const seen = pages.map((page) => page.awaitText(label))
    const { status } = await wire.ask(
      renderRequest({
        method: 'PUT',
        path: `/machines/${macOf(0)}`,
        headers: job.headers,
        body: JSON.stringify({ labels: [label] }),
      }),
    )
    await Promise.all(seen)
    const milliseconds = performance.now() - startedAt
    watch.note({ status, bytes: 0, milliseconds }, status === 200)
  }
  for (const page of pages) page.close()
  wire.close()
  const load = watch.stop()
  return { ...load, count: Math.max(load.count, events) }
}

interface OpenPage {
  awaitText(text: string): Promise<void>
  close(): void
}

/** Listens as the machines page does: to its first hundred rows. */
function openPage(job: PagesJob, look: (text: string) => void): Promise<OpenPage> {
  let wanted: { readonly text: string; found(): void } | null = null
  return new Promise((resolve, reject) => {
    const asked = openRequest({
      host: '127.0.0.1',
      port: job.port,
      path: '/events/machines?q=&page=1',
      headers: job.headers,
    })
    asked.on('error', reject).end()
    asked.on('response', (response) => {
      if (response.statusCode !== 200) reject(new Error(`the channel: ${response.statusCode}`))
      response.setEncoding('latin1')
      // The last characters stay: a text may arrive in two parts.
      let tail = ''
      response.on('data', (text: string) => {
        look(text)
        if (wanted !== null && (tail + text).includes(wanted.text)) wanted.found()
        tail = text.slice(-40)
      })
      response.on('error', () => undefined)
      resolve({ awaitText, close: () => asked.destroy() })
    })
  })

  function awaitText(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${text} never came`)), PATIENCE_MS)
      wanted = {
        text,
        found() {
          clearTimeout(timer)
          wanted = null
          resolve()
        },
      }
    })
  }
}

interface LoopJob {
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

async function runLoop(job: LoopJob): Promise<Load> {
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

export type Job = LoopJob | StreamsJob | BoxesJob | PagesJob

/** Milliseconds, of all answers. */
export interface Latencies {
  readonly p50: number
  readonly p99: number
  readonly worst: number
}

export interface Load {
  readonly seconds: number
  /** Answers (of pages: events) in that time. */
  readonly count: number
  readonly bytes: number
  /** Answers with another status than they should have. */
  readonly wrong: number
  readonly latencies: Latencies
  /** Processor seconds of the server's process tree, and of this process, in that time. */
  readonly serverCpu: number
  readonly loadCpu: number
}

process.once('message', (job: Job) => {
  run(job).then(
    (load) => process.send?.(load, () => process.exit(0)),
    (thrown: unknown) => {
      console.error(thrown)
      process.exit(1)
    },
  )
})

function run(job: Job): Promise<Load> {
  switch (job.kind) {
    case 'loop':
      return runLoop(job)
    case 'streams':
      return runStreams(job)
    case 'boxes':
      return runBoxes(job)
    case 'pages':
      return runPages(job)
  }
}

interface BoxesJob {
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

async function runBoxes(job: BoxesJob): Promise<Load> {
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
