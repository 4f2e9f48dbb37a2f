/** A large fleet beside a small one: what one contact costs, the list page, a change on open pages. */
import { createFolder, PASSWORD, type Folder } from './server-fixture.ts'
import { middle, openPages, ratioOf, runLoad, type Bar } from './server-jobs.ts'
import { readPeakMib } from '../process-tree.ts'
import type { Load } from './server-load.ts'
import { startFlasher, type Subject } from './server-subjects.ts'

export interface FleetRow {
  readonly machines: number
  readonly what: string
  readonly loads: readonly Load[]
}

export interface FleetMemory {
  readonly machines: number
  readonly peakMib: number
}

const [SMALL, LARGE] = [100, 10_000]
const PAGES = 20
const CHANGES = 10
/** Machines that make contact. */
const CONTACTS = 50
const MAX = 1.5

const CONTACT = 'contact'
const WATCHED = `contact, ${PAGES} pages open`
const LIST = 'list page'
const LIVE = `change until ${PAGES} pages have it`

const keyOf = (machines: number, what: string) => `${machines} ${what}`

/** CPU seconds of the server for one answer. */
export const costOf = ({ serverCpu, count }: Load) => serverCpu / count

export async function measureFleet(runs: number, seconds: number) {
  const measured = new Map<string, readonly Load[]>()
  const memory: FleetMemory[] = []
  await using small = await openFleet(SMALL)
  await using large = await openFleet(LARGE)
  for (let run = 0; run < runs; run += 1) {
    for (const fleet of [small, large]) {
      for (const what of [CONTACT, WATCHED, LIST, LIVE]) {
        const load = await measureOne(fleet, what, seconds)
        const key = keyOf(fleet.machines, what)
        measured.set(key, [...(measured.get(key) ?? []), load])
        const cost = `${(costOf(load) * 1e6).toFixed(0)} µs`
        console.error(`${key}: ${cost}, p50 ${load.latencies.p50.toFixed(2)} ms`)
      }
    }
  }
  for (const { machines, subject } of [small, large]) {
    memory.push({ machines, peakMib: readPeakMib(subject.pid) })
  }
  const loadsOf = (machines: number, what: string) => measured.get(keyOf(machines, what)) ?? []
  const rows: readonly FleetRow[] = [CONTACT, WATCHED, LIST, LIVE].flatMap((what) =>
    [SMALL, LARGE].map((machines) => ({ machines, what, loads: loadsOf(machines, what) })),
  )
  const bars: readonly Bar[] = [CONTACT, WATCHED].map((what) => ({
    what: `${what}, its cost in 10,000 machines to that in 100`,
    value: ratioOf(loadsOf(LARGE, what), loadsOf(SMALL, what), costOf),
    limit: MAX,
    is: 'most',
  }))
  return { rows, bars, memory }
}

interface OpenFleet extends AsyncDisposable {
  readonly machines: number
  readonly folder: Folder
  readonly subject: Subject
  readonly cookie: string
}

async function openFleet(machines: number): Promise<OpenFleet> {
  const folder = await createFolder(machines)
  const subject = await startFlasher(folder)
  const login = await fetch(`http://127.0.0.1:${subject.port}/ui/login`, {
    method: 'POST',
    body: new URLSearchParams({ password: PASSWORD }),
    redirect: 'manual',
  })
  const cookie = login.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
  return {
    machines,
    folder,
    subject,
    cookie,
    async [Symbol.asyncDispose]() {
      await subject[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

async function measureOne(fleet: OpenFleet, what: string, seconds: number): Promise<Load> {
  const { machines, folder, subject, cookie } = fleet
  const headers = { authorization: `Bearer ${folder.token}` }
  // As many in both: how often one machine comes decides what is put on record of it.
  const flashed = { first: 0, step: machines / CONTACTS, count: CONTACTS }
  const loop = { kind: 'loop', connections: 32, seconds, machines: flashed } as const
  const contact = { ...loop, path: '/pxe/{mac}', headers: {} }
  switch (what) {
    case CONTACT:
      return await runLoad(contact, subject)
    case WATCHED: {
      const pages = await openPages({ kind: 'pages', pages: PAGES, headers, changes: 0 }, subject)
      const load = await runLoad(contact, subject)
      await pages.close()
      return load
    }
    case LIST:
      return await runLoad(
        { ...loop, connections: 1, path: '/ui/machines', headers: { cookie } },
        subject,
      )
    default:
      return await runLoad({ kind: 'pages', pages: PAGES, headers, changes: CHANGES }, subject)
  }
}

/** For people: the middle of the times of one answer. */
export const typicalMs = (loads: readonly Load[]) => middle(loads, ({ latencies }) => latencies.p50)
