/** The storm: power comes back, 500 machines boot at once, and twenty people watch. */
import { readPeakMib } from '../process-tree.ts'
import { createFolder, renderInventory, SMALL_FILES } from './server-fixture.ts'
import { middle, openPages, runLoad, type Bar } from './server-jobs.ts'
import type { Load } from './server-load.ts'
import { readAnswers } from './server-routes.ts'
import { startBare, startFlasher, type Subject } from './server-subjects.ts'

export interface StormRow {
  readonly subject: string
  readonly within: number
  readonly loads: readonly Load[]
  readonly peakMib: number
}

const BOXES = 500
/** The others are new. */
const KNOWN = 400
const PAGES = 20
/** Seconds over which the machines are switched on. */
const PACES = [0, 10] as const
const MAX_MS = 50
const MAX_MIB = 300
/** The files count once they have lain still for a while. */
const RIPE_MS = 9000

export async function measureStorm(runs: number) {
  const rows: StormRow[] = []
  const bars: Bar[] = []
  for (const within of PACES) {
    const [ours, bare]: [Load[], Load[]] = [[], []]
    const [peaks, barePeaks]: [number[], number[]] = [[], []]
    for (let run = 0; run < runs; run += 1) {
      await using folder = await createFolder(KNOWN)
      await using flasher = await startFlasher(folder)
      const answers = await readAnswers(flasher)
      await using h3 = await startBare({ kind: 'h3', answers, bootDir: folder.bootDir })
      await new Promise((resolve) => {
        setTimeout(resolve, RIPE_MS)
      })
      const headers = { authorization: `Bearer ${folder.token}` }
      const pages = await openPages({ kind: 'pages', pages: PAGES, headers, changes: 0 }, flasher)
      ours.push(await blow(flasher, within))
      const seen = await pages.close()
      console.error(`storm: ${seen.count} events on ${PAGES} pages`)
      bare.push(await blow(h3, within))
      peaks.push(readPeakMib(flasher.pid))
      barePeaks.push(readPeakMib(h3.pid))
    }
    rows.push({ subject: 'flasher', within, loads: ours, peakMib: Math.max(...peaks) })
    rows.push({ subject: 'bare h3', within, loads: bare, peakMib: Math.max(...barePeaks) })
    const what = within === 0 ? 'storm at once' : `storm within ${within} s`
    const limit = Math.max(MAX_MS, 2 * p99Of(bare))
    bars.push({ what: `${what}, p99 in ms`, value: p99Of(ours), limit, is: 'most' })
    bars.push({
      what: `${what}, peak memory in MiB`,
      value: Math.max(...peaks),
      limit: MAX_MIB,
      is: 'most',
    })
  }
  return { rows, bars }
}

const p99Of = (loads: readonly Load[]) => middle(loads, ({ latencies }) => latencies.p99)

async function blow(subject: Subject, within: number): Promise<Load> {
  const load = await runLoad(
    { kind: 'boxes', boxes: BOXES, within, files: SMALL_FILES, inventory: renderInventory() },
    subject,
  )
  const { p50, p99, worst } = load.latencies
  const times = [p50, p99, worst].map((time) => time.toFixed(0)).join(', ')
  console.error(
    `storm ${subject.name}: p50, p99, worst ${times} ms in ${load.seconds.toFixed(1)} s, CPU ${load.serverCpu.toFixed(1)} s`,
  )
  return load
}
