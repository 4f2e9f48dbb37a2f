/** The storm: made-up machines and people at several servers while faults of a seeded list happen; nothing may be lost. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { createQueue } from '#kit/host/queue.ts'
import { until } from '#test/support/cluster/servers.ts'
import { createRandom } from '#test/support/collect.ts'
import type { Bar } from '../server/server-jobs.ts'
import { macOf } from '../server/server-wire.ts'
import { type AskSite, createAsk } from './cluster-ask.ts'
import { type Book, createBook, createExpectation, KINDS_FOUND } from './cluster-book.ts'
import { type FaultKind, listFaults, renderFault, type StormFault } from './cluster-faults.ts'
import { measureForwarded } from './cluster-forwarded.ts'
import { createStormGuest } from './cluster-guest.ts'
import { createStormMachine, type StormMachine } from './cluster-machine.ts'
import { type GuestMedia, openMedia } from './cluster-media.ts'
import type { KeptProcess } from './cluster-process.ts'
import { openSite, type Site, type SiteServer } from './cluster-site.ts'
import { listBars, renderFound, renderStorm } from './cluster-table.ts'
import { createTakeovers } from './cluster-takeovers.ts'

interface Scene {
  readonly site: Site
  /** Who leads as the fault begins, and one of the others. */
  readonly leader: SiteServer
  readonly other: SiteServer
  readonly any: SiteServer
  readonly cache: KeptProcess
  readonly seconds: number
}

type Act = (scene: Scene) => Promise<void>

const SLOW_MS = 2000
/** From the leader's view the database is not cut: the others do not reach the leader. */
type Cuttable = Pick<SiteServer['toDatabase'], 'sever' | 'hold' | 'mend'>

async function during(seconds: number, begin: () => unknown, end: () => unknown) {
  await begin()
  await sleep(seconds * 1000)
  await end()
}

const hang = (process: KeptProcess, seconds: number) => {
  const pid = process.pid()
  const signal = (name: NodeJS.Signals) => {
    // What has ended meanwhile is another process by now.
    if (process.pid() === pid) process.kill(name)
  }
  return during(
    seconds,
    () => signal('SIGSTOP'),
    () => signal('SIGCONT'),
  )
}
const cut = (wire: Cuttable, seconds: number) => during(seconds, wire.sever, wire.mend)
const silence = (wire: Cuttable, seconds: number) => during(seconds, wire.hold, wire.mend)

/** What is killed starts again by itself: nobody waits for it. */
const end = (process: KeptProcess, signal: NodeJS.Signals, seconds: number) => {
  process.end(signal, seconds)
  return Promise.resolve()
}

const ACTS: Readonly<Record<FaultKind, Act>> = {
  'kill-leader': ({ leader, seconds }) => end(leader.process, 'SIGKILL', seconds),
  'kill-standby': ({ other, seconds }) => end(other.process, 'SIGKILL', seconds),
  'hang-leader': ({ leader, seconds }) => hang(leader.process, seconds),
  'hang-standby': ({ other, seconds }) => hang(other.process, seconds),
  'stop-leader': ({ leader, seconds }) => end(leader.process, 'SIGTERM', seconds),
  'cut-leader': ({ leader, seconds }) => cut(leader.toDatabase, seconds),
  'cut-standby': ({ other, seconds }) => cut(other.toDatabase, seconds),
  'silent-leader': ({ leader, seconds }) => silence(leader.toDatabase, seconds),
  'silent-standby': ({ other, seconds }) => silence(other.toDatabase, seconds),
  'cut-servers': ({ leader, seconds }) => cut(leader.toServer, seconds),
  'silent-servers': ({ leader, seconds }) => silence(leader.toServer, seconds),
  'database-stop': ({ site: { database }, seconds }) =>
    during(seconds, () => database.stop('SIGINT'), database.start),
  'database-kill': ({ site: { database }, seconds }) =>
    during(seconds, () => database.stop('SIGQUIT'), database.start),
  'database-slow': ({ site: { servers }, seconds }) =>
    during(
      seconds,
      () => servers.forEach((each) => each.toDatabase.slow(SLOW_MS)),
      () => servers.forEach((each) => each.toDatabase.mend()),
    ),
  'database-full': ({ site: { database }, seconds }) =>
    during(seconds, database.disk.fill, database.disk.empty),
  'disk-full': ({ leader, seconds }) => during(seconds, leader.disk.fill, leader.disk.empty),
  clock: ({ any }) => {
    any.process.setClock()
    return Promise.resolve()
  },
  'cache-kill': ({ cache, seconds }) => end(cache, 'SIGKILL', seconds),
  'cache-hang': ({ cache, seconds }) => hang(cache, seconds),
}

/** `leader`: the number of the server that leads. Resolves when the fault is over; its consequences may not be. */
async function carryOut(site: Site, fault: StormFault, leader: number): Promise<void> {
  const { servers, caches } = site
  const others = servers.filter((_, at) => at !== leader)
  const pick = <T>(all: readonly T[]) => {
    const picked = all[Math.floor(fault.which * all.length)]
    if (picked === undefined) throw new Error('a site has at least two servers, and a cache')
    return picked
  }
  await ACTS[fault.kind]({
    site,
    leader: pick(servers.slice(leader, leader + 1)),
    other: pick(others),
    any: pick(servers),
    cache: pick(caches),
    seconds: fault.seconds,
  })
}

interface PersonOptions {
  readonly number: number
  readonly ask: AskSite
  readonly book: Book
  readonly random: () => number
  readonly leaving: AbortSignal
  readonly signal: AbortSignal
}

const MACHINES_EACH = 12
const PAUSE_MS = 400
/** Their machines are none of those that flash. */
const FIRST = 5_000_000
const GONE = 'removed'

/** Somebody who labels and removes machines one after the other, and looks whether it is so. */
function createPerson({ number, ask, book, random, leaving, signal }: PersonOptions) {
  const machines = Array.from({ length: MACHINES_EACH }, (_, at) => ({
    mac: macOf(FIRST + number * MACHINES_EACH + at),
    labelled: createExpectation<string>(GONE),
  }))
  let turn = 0

  async function change({ mac, labelled }: (typeof machines)[number]) {
    const isRemoval = random() < 0.15
    const label = isRemoval ? GONE : `turn-${(turn += 1)}`
    const init = isRemoval
      ? { method: 'DELETE' }
      : { method: 'PUT', body: JSON.stringify({ labels: [label] }) }
    labelled.try(label)
    const answer = await ask.once(`/machines/${mac}`, init, signal)
    if (answer === null) {
      book.count('changes of people in doubt')
      return
    }
    const isRight = answer.status < 300 || (isRemoval && answer.status === 404)
    if (!isRight) throw new Error(`${init.method} of ${mac}: ${answer.status} ${answer.text}`)
    labelled.acknowledge(label)
    book.count('changes of people acknowledged')
  }

  /** Resolves to its label; null: nobody answered. */
  async function read(mac: string): Promise<string | null> {
    const answer = await ask.once(`/machines/${mac}`, {}, signal)
    if (answer === null) return null
    if (answer.status === 404) return GONE
    const { labels = [] }: { readonly labels?: readonly string[] } = JSON.parse(answer.text)
    return labels[0] ?? ''
  }

  async function look(
    { mac, labelled }: (typeof machines)[number],
    when: 'right after' | 'at the end',
  ) {
    const found = await read(mac)
    if (found === null) return false
    book.count('answers compared')
    if (!labelled.allows(found)) {
      const kind = when === 'right after' ? 'stale' : 'lost'
      book.find(kind, `${mac} is ${found}, and may be ${labelled.possible().join(', ')}`)
    }
    return true
  }

  return {
    async live() {
      while (!leaving.aborted) {
        const machine = machines[Math.floor(random() * machines.length)]
        if (machine === undefined) return
        await change(machine)
        if (random() < 0.5) await look(machine, 'right after')
        await sleep(PAUSE_MS, undefined, { signal })
      }
    },
    /** Compares all of its machines, once nothing happens any more. */
    async check() {
      for (const machine of machines) await until(() => look(machine, 'at the end'), 60_000)
    },
  }
}

const FoundMachine = z.object({
  bty_image_ref: z.string().nullable(),
  last_flashed_at: z.string().nullable(),
  known_disks: z.array(z.object({ serial: z.string().nullable() })).nullable(),
})

const FoundRuns = z.object({ runs: z.array(z.object({ id: z.string(), state: z.string() })) })

const CHECKS_AT_ONCE = 8
const NEVER = new AbortController().signal

/** Each order, inventory and end that was acknowledged is there, and nothing that nobody did. */
async function checkMachines(
  machines: readonly StormMachine[],
  ask: AskSite,
  book: Book,
): Promise<void> {
  const inTurn = createQueue(CHECKS_AT_ONCE)
  const read = async (path: string): Promise<unknown> =>
    JSON.parse((await ask.insist(path, {}, NEVER)).text)
  await Promise.all(machines.map((machine) => inTurn(() => checkMachine(machine, read, book))))
}

async function checkMachine(
  { mac, state }: StormMachine,
  read: (path: string) => Promise<unknown>,
  book: Book,
) {
  const { image, ended, begun, reported } = state()
  if (image === null) return
  const found = FoundMachine.parse(await read(`/machines/${mac}`))
  const { runs } = FoundRuns.parse(await read(`/machines/${mac}/runs?limit=200`))
  const lose = (text: string) => book.find('lost', `${mac}: ${text}`)
  if (found.bty_image_ref !== image.ref) lose(`has the image ${found.bty_image_ref}`)
  if (ended.size > 0 && found.last_flashed_at === null) lose('was never flashed')
  const mark = found.known_disks?.[1]?.serial ?? null
  if (!reported.allows(mark)) {
    lose(`has the inventory ${mark}, and may have ${reported.possible().join(', ')}`)
  }
  const stateOf = new Map(runs.map(({ id, state: is }) => [id, is]))
  for (const run of listLost(stateOf, ended, begun)) lose(run)
  book.count('runs compared', ended.size)
}

function listLost(
  stateOf: ReadonlyMap<string, string>,
  ended: ReadonlySet<string>,
  begun: ReadonlySet<string>,
): readonly string[] {
  const undone = [...ended].filter((run) => stateOf.get(run) !== 'done')
  const unknown = [...stateOf.keys()].filter((run) => !begun.has(run))
  return [
    ...undone.map((run) => `its run ${run} was done, and is ${stateOf.get(run)}`),
    ...unknown.map((run) => `has a run of nobody: ${run}`),
  ]
}

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
