/** Load: open pages that listen to the fleet; each change that is made is timed until all have it. */
import { setTimeout as pause } from 'node:timers/promises'
import { request } from 'node:http'
import type { Load } from './server-load.ts'
import { startStopwatch } from './server-stopwatch.ts'
import { createWire, macOf, renderRequest } from './server-wire.ts'

export interface PagesJob {
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

export async function runPages(job: PagesJob): Promise<Load> {
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
    const asked = request({
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
