/** Watches the demo's machine through its server and its serial line; arms and restarts it where that is due. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Bmc } from './bmc.ts'
import { MACHINE } from './machine.ts'
import { arm, equip, readSnapshot, restartByBmc, type OfferedImage } from './operator.ts'
import { readSerialTail, type Machine } from './qemu.ts'
import { readTail, type Server } from './server.ts'
import {
  startProgress,
  updateProgress,
  describeActivity,
  resetProgress,
  type Snapshot,
  type Progress,
  type DemoEvent,
} from './machine-progress.ts'

/** `seconds` count from when the machine was switched on. */
export interface WatchReport {
  event(event: DemoEvent | { readonly event: 'restarted' }, seconds: number): void
  /** What the machine is doing. */
  watching(snapshot: Snapshot, activity: string, seconds: number): void
}

interface Watch {
  readonly machine: Machine
  readonly server: Server
  readonly image: OfferedImage
  /** Arms it, and ends once it has booted what was flashed. */
  readonly arms: boolean
  readonly bmc: Bmc | null
  /** Whether the image says something that is known when it boots, and whether it then calls the server. */
  readonly hasGreeting: boolean
  readonly calls: boolean
  readonly logs: { readonly serverLog: string; readonly serialLog: string }
  readonly report: WatchReport
  readonly signal: AbortSignal
}

export interface Outcome {
  /** Null: the machine was switched off, or its window closed. */
  readonly ended: 'booted' | 'failed' | null
}

const POLL_MS = 250
/** A machine of which nothing is heard for so long is stuck, however slow the host. */
const STUCK_MS = 600_000

/** Until `signal`, or until the machine has ended; where the demo arms it, until it has booted its disk. */
export async function watchMachine(watch: Watch): Promise<Outcome> {
  const { report, signal, arms } = watch
  const ends = observeEnds(watch)
  const seconds = createStopwatch()
  const read = createReader(watch)
  const checkStuck = createStuckCheck(watch)
  let progress = startProgress(await read())
  let isEquipped = false
  for (;;) {
    const snapshot = await read().catch(ends.explain)
    if (snapshot === null || (await ends.isOff())) return { ended: null }
    if (!isEquipped && snapshot.machine !== null) {
      await equip(watch.server, watch)
      isEquipped = true
    }
    const update = updateProgress(progress, snapshot)
    progress = await act(watch, update, snapshot, seconds)
    const ended = arms ? decideEnd(watch, update) : null
    if (ended !== null) return { ended }
    if (arms) await checkStuck(snapshot)
    report.watching(snapshot, describeActivity(snapshot.serial), seconds())
    await pause(POLL_MS, undefined, { signal })
  }
}

function createStopwatch(): () => number {
  const start = performance.now()
  return () => (performance.now() - start) / 1000
}

const createReader =
  ({ server, machine, image }: Watch) =>
  async (): Promise<Snapshot> => ({
    ...(await readSnapshot(server, image)),
    serial: await machine.readSerial(),
  })

type Update = ReturnType<typeof updateProgress>

/** Resolves to whether it was restarted: where it has a BMC, that is left to the person who armed it. */
async function restart({ machine, server, bmc, arms }: Watch): Promise<boolean> {
  if (bmc !== null && !arms) return false
  if (bmc === null) machine.restart()
  else await restartByBmc(server)
  return true
}

/** Reports what is new, arms the machine, and restarts one that would not ask the server again. */
async function act(
  watch: Watch,
  update: Update,
  snapshot: Snapshot,
  seconds: () => number,
): Promise<Progress> {
  const { arms, report, server, image } = watch
  let { progress } = update
  for (const event of update.events) {
    if (event.event === 'waiting' && arms) {
      await arm(server, image, findDiskSerial(snapshot))
      continue
    }
    report.event(event, seconds())
    if (event.event === 'armed' && event.needsRestart) {
      if (!(await restart(watch))) continue
      progress = resetProgress(progress, snapshot.serial)
      report.event({ event: 'restarted' }, seconds())
    }
  }
  return progress
}

const findDiskSerial = ({ machine }: Snapshot) => machine?.disks?.[0]?.serial ?? MACHINE.serial

/** Where nothing is known that the image says, it is enough that the machine went to its disk. */
function decideEnd({ hasGreeting, calls }: Watch, { progress, events }: Update): Outcome['ended'] {
  const last = calls ? 'proved' : hasGreeting ? 'booted' : 'to-disk'
  if (events.some(({ event }) => event === 'failed' || event === 'unproved')) return 'failed'
  return progress.flashes > 0 && events.some(({ event }) => event === last) ? 'booted' : null
}

/** What has ended on its own is reported in its own words. */
function observeEnds({ logs, server, machine, signal }: Watch) {
  let isServerOff = false
  let words: string | null = null
  const noteEnds = async () => {
    words = await machine.ended
  }
  const noteServer = async () => {
    await server.ended
    isServerOff = true
  }
  void noteEnds()
  void noteServer()
  const describeServer = async () =>
    new Error(`the server has stopped:\n${await readTail(logs.serverLog)}`)
  return {
    async explain(thrown: unknown): Promise<null> {
      signal.throwIfAborted()
      throw isServerOff ? await describeServer() : thrown
    },
    async isOff(): Promise<boolean> {
      if (isServerOff) throw await describeServer()
      if (words !== null && words !== '') throw new Error(`QEMU has ended:\n${words}`)
      return words !== null
    },
  }
}

/** Rejects when nothing at all has happened for long. */
function createStuckCheck({ logs }: Watch) {
  let before = ''
  let since = performance.now()
  return async ({ serial, run }: Snapshot) => {
    const now = `${serial.length} ${run?.phase} ${run?.bytesWritten}`
    if (now !== before) since = performance.now()
    before = now
    if (performance.now() - since < STUCK_MS) return
    const said = await readSerialTail(logs.serialLog)
    throw new Error(`the machine has stopped responding; its last lines:\n${said}`)
  }
}
