/** The storm: made-up machines and people at several servers while faults of a seeded list happen; nothing may be lost. */
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '#test/support/cluster/servers.ts'
import { createRandom } from '#test/support/collect.ts'
import type { Bar } from '../server/server-jobs.ts'
import { carryOut } from './cluster-acts.ts'
import { createAsk, type AskSite } from './cluster-ask.ts'
import { createBook, KINDS_FOUND, type Book } from './cluster-book.ts'
import { listFaults, renderFault, type StormFault } from './cluster-faults.ts'
import { measureForwarded } from './cluster-forwarded.ts'
import { checkMachines } from './cluster-check.ts'
import { createStormGuest } from './cluster-guest.ts'
import { createStormMachine } from './cluster-machine.ts'
import { openMedia, type GuestMedia } from './cluster-media.ts'
import { createPerson } from './cluster-people.ts'
import { openSite, type Site } from './cluster-site.ts'
import { createTakeovers } from './cluster-takeovers.ts'
import { listBars, renderFound, renderStorm } from './cluster-table.ts'

export interface StormOptions {
  readonly faults: number
  readonly seed: number
  readonly machines: number
  readonly servers: number
  /** How many machines there are in QEMU. */
  readonly qemu: number
}

const CACHES = 3
const PEOPLE = 6
const IMAGE_BYTES = 512 * 1024
const FLASH_SECONDS = 6
const AT_ONCE = 60
/** So that the load stays low, however many machines there are. */
const ORDERS_PER_SECOND = 4
const REPORT_MS = 20_000
const CALM_MS = 120_000
const LEAVING_MS = 240_000
/** The same where some are in QEMU. */
const GUESTS_LEAVING_MS = 25 * 60_000

const say = (line: string) => console.error(`${new Date().toISOString().slice(11, 19)} ${line}`)

/** Prints the faults, each finding and the progress; returns a table and the goals. */
export async function measureCluster(options: StormOptions) {
  const faults = listFaults(options.faults, options.seed)
  for (const [at, fault] of faults.entries()) console.error(`fault ${at}: ${renderFault(fault)}`)
  const book = createBook(say)
  const takeovers = createTakeovers(options.servers, say)
  const media = options.qemu === 0 ? null : await openMedia()
  const onRole = takeovers.onRole
  await using site = await openSite({
    servers: options.servers,
    caches: CACHES,
    imageBytes: IMAGE_BYTES,
    atOnce: AT_ONCE,
    media,
    onRole,
  })
  const began = performance.now()
  const ask = await createAsk(site.urls, createRandom(options.seed + 1))
  await awaitLiveSystem(site, ask)
  const crowd = gather(site, ask, book, { ...options, media })
  const report = setInterval(() => say(renderProgress(book, takeovers.roles())), REPORT_MS)
  try {
    await blow(site, faults, takeovers)
    await calm(site, takeovers.roles).catch(() =>
      book.find('gaveUp', 'no server leads, long after the last fault'),
    )
    say('every fault is over')
    await crowd.leave()
    await checkMachines(crowd.machines, ask, book)
    for (const person of crowd.people) await person.check()
    checkServers(site, book)
    const forwarded = await measureForwarded(site, takeovers.leader())
    const seconds = (performance.now() - began) / 1000
    const result = { options, seconds, book, taken: takeovers.taken(), forwarded }
    return {
      text: renderStorm(result),
      found: renderFound(result),
      bars: listBars(result) satisfies readonly Bar[],
    }
  } finally {
    clearInterval(report)
    crowd.end()
    if (KINDS_FOUND.some((kind) => book.countOf(kind) > 0)) tellLines(site)
  }
}

/** A machine that does not take part. */
const PROBE = '52:54:00:ff:ff:ff'

/** Resolves once each server boots machines into the live system, whose initrd it looks at first. */
async function awaitLiveSystem({ urls }: Site, ask: AskSite) {
  const wizard = { method: 'PUT', body: JSON.stringify({ boot_mode: 'flasher-tui' }) }
  await ask.insist(`/machines/${PROBE}`, wizard, AbortSignal.timeout(CALM_MS))
  for (const url of urls) {
    const path = `${url}/pxe/${PROBE.replaceAll(':', '-')}?buildarch=x86_64&platform=efi`
    await until(async () => /^kernel /m.test(await (await fetch(path)).text()), CALM_MS)
  }
  await ask.insist(`/machines/${PROBE}`, { method: 'DELETE' }, AbortSignal.timeout(CALM_MS))
}

/** One fault after the other, as the list says. */
async function blow(
  site: Site,
  faults: readonly StormFault[],
  takeovers: ReturnType<typeof createTakeovers>,
) {
  await sleep(5000)
  for (const [at, fault] of faults.entries()) {
    const leader = takeovers.leader()
    say(`fault ${at}: ${renderFault(fault)}; server ${leader} leads`)
    takeovers.begin(fault)
    await carryOut(site, fault, leader)
    await sleep(fault.rest * 1000)
  }
}

/** Resolves once one server leads and all others stand by. */
async function calm(site: Site, roles: () => readonly string[]) {
  await until(async () => {
    const found = roles().toSorted()
    if (found.some((role, at) => role !== (at === 0 ? 'leads' : 'stands-by'))) return false
    const answers = await Promise.all(site.urls.map((url) => fetch(`${url}/healthz?ready`)))
    return answers.every(({ ok }) => ok)
  }, CALM_MS)
}

interface CrowdOptions extends StormOptions {
  readonly media: GuestMedia | null
}

function gather(site: Site, ask: AskSite, book: Book, options: CrowdOptions) {
  const { machines: count, seed, qemu, media } = options
  const [leaving, ending] = [new AbortController(), new AbortController()]
  const shared = { ask, book, leaving: leaving.signal, signal: ending.signal }
  const machines = Array.from({ length: count }, (_, number) =>
    createStormMachine({
      ...shared,
      number,
      servers: site.urls,
      images: site.images,
      random: createRandom(seed * 1e6 + number),
      flashSeconds: FLASH_SECONDS,
      restSeconds: count / ORDERS_PER_SECOND,
    }),
  )
  const people = Array.from({ length: PEOPLE }, (_, number) =>
    createPerson({ ...shared, number, random: createRandom(seed * 1e7 + number) }),
  )
  const toGuest =
    ({ raw }: GuestMedia) =>
    (_: unknown, number: number) =>
      createStormGuest({ ...shared, number, servers: site.urls, images: site.disks, raw })
  const guests = media === null ? [] : Array.from({ length: qemu }, toGuest(media))
  const lives = [...machines, ...people, ...guests].map(async (each) => {
    try {
      await each.live()
    } catch (thrown) {
      if (!ending.signal.aborted) book.find('gaveUp', String(thrown))
    }
  })
  return {
    machines,
    people,
    /** Each ends what it is at. */
    async leave() {
      leaving.abort()
      const limit = setTimeout(
        () => {
          book.find('gaveUp', 'some machines came to no end')
          ending.abort()
        },
        qemu === 0 ? LEAVING_MS : GUESTS_LEAVING_MS,
      )
      await Promise.all(lives)
      clearTimeout(limit)
    },
    end: () => ending.abort(),
  }
}

/** Another exit code than those of a kill, a stop in order and a lost lease is none that systemd mends. */
function checkServers(site: Site, book: Book) {
  for (const [at, { process }] of site.servers.entries()) {
    for (const code of process.ends()) {
      book.count(`servers that ended with ${code}`)
      if (code === '2') book.find('refused', `server ${at} ended with ${code}`)
    }
  }
}

const renderProgress = (book: Book, roles: readonly string[]) =>
  `${roles.join(', ')}; ${[...book.counts()].map(([what, count]) => `${what} ${count}`).join(', ')}`

const TOLD = 60

function tellLines(site: Site) {
  for (const [at, { process }] of site.servers.entries()) {
    const lines = process.lines()
    const told = [...lines.filter((line) => /script for|error/i.test(line)), ...lines.slice(-TOLD)]
    for (const line of told) console.error(`server ${at}: ${line}`)
  }
}
