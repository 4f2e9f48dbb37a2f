/** Carries out a fault of the list, and makes well what it did. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultKind, StormFault } from './cluster-faults.ts'
import type { KeptProcess } from './cluster-process.ts'
import type { Site, SiteServer } from './cluster-site.ts'

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
export async function carryOut(site: Site, fault: StormFault, leader: number): Promise<void> {
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
