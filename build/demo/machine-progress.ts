/** What has become of the demo's machine since the last snapshot, as events. */
import { GREETING } from './boot-sector.ts'

/** What the server says of the machine, and what its serial line has said. */
export interface Snapshot {
  /** Null: the server has not seen it yet. */
  readonly machine: {
    readonly disks: readonly { readonly serial: string | null; readonly size: string }[] | null
    /** To be flashed at its next network boot, or just being flashed. */
    readonly isArmed: boolean
    /** The name of the assigned image, where that is known. */
    readonly image: string | null
  } | null
  /** The newest one. */
  readonly run: Run | null
  readonly serial: string
}

export interface Run {
  readonly id: string
  /** `write`, `verify`, … */
  readonly phase: string
  /** `running`, `stalled`, `done`, `failed`, `cancelled`, `lost`. */
  readonly state: string
  readonly bytesWritten: number
  readonly totalBytes: number | null
  /** Bytes per second. */
  readonly rate: number | null
  readonly averageRate: number | null
  readonly isVerified: boolean | null
  readonly reason: string | null
  /** What is known of the first boot of the new system; null: nobody waits for it. */
  readonly proof: Proof | null
}

interface Proof {
  /** `watching`, `booted`, `seen`, `not-seen`, `failed`. */
  readonly state: string
  /** Seconds from the end of the flash. */
  readonly seconds: number | null
  readonly reason: string | null
}

export type DemoEvent =
  | { readonly event: 'discovered' }
  | { readonly event: 'disks'; readonly serial: string; readonly size: string }
  /** `again`: it was flashed by an earlier demo. */
  | { readonly event: 'waiting'; readonly again: boolean }
  | { readonly event: 'armed'; readonly image: string | null; readonly needsRestart: boolean }
  | { readonly event: 'flashing' }
  | { readonly event: 'flashed'; readonly run: Run }
  | { readonly event: 'failed'; readonly reason: string }
  | { readonly event: 'to-disk' }
  | { readonly event: 'booted' }
  | { readonly event: 'proved'; readonly seconds: number | null }
  | { readonly event: 'unproved'; readonly reason: string }

/** What was noticed so far. */
export interface Progress {
  readonly isKnown: boolean
  readonly hasDisks: boolean
  readonly isWaiting: boolean
  readonly isArmed: boolean
  /** The run that was seen to begin; null before the first one. */
  readonly run: { readonly id: string; readonly isOver: boolean; readonly isProved: boolean } | null
  /** How much of the serial line was looked at for what a disk says. */
  readonly read: number
  readonly isOnDisk: boolean
  readonly hasGreeted: boolean
  readonly flashes: number
}

/** Returns what is known at the start: what the server knows from an earlier demo is no news. */
export const startProgress = ({ machine, run }: Pick<Snapshot, 'machine' | 'run'>): Progress => ({
  isKnown: machine !== null,
  hasDisks: (machine?.disks ?? []).length > 0,
  isWaiting: false,
  isArmed: false,
  run: run === null ? null : { id: run.id, isOver: true, isProved: true },
  read: 0,
  isOnDisk: false,
  hasGreeted: false,
  flashes: 0,
})

interface Update {
  readonly progress: Progress
  readonly events: readonly DemoEvent[]
}

/** Compares a snapshot with what was noticed before; each part notes what is new to it. */
export function updateProgress(before: Progress, snapshot: Snapshot): Update {
  return [noteDiscovery, noteSerial, noteArming, noteRun, noteWaiting].reduce<Update>(
    ({ progress, events }, note) => {
      const update = note(progress, snapshot)
      return { progress: update.progress, events: [...events, ...update.events] }
    },
    { progress: before, events: [] },
  )
}

/**
 * Returns the progress after the machine was switched off and on: what its serial line said before
 * is of no interest.
 */
export const resetProgress = (progress: Progress, serial: string): Progress => ({
  ...progress,
  read: serial.length,
  isOnDisk: false,
  hasGreeted: false,
})

function noteDiscovery(progress: Progress, { machine }: Snapshot): Update {
  if (machine === null) return { progress, events: [] }
  const events: DemoEvent[] = []
  if (!progress.isKnown) events.push({ event: 'discovered' })
  const [disk] = machine.disks ?? []
  if (!progress.hasDisks && disk !== undefined) {
    events.push({ event: 'disks', serial: disk.serial ?? '', size: disk.size })
  }
  const hasDisks = progress.hasDisks || disk !== undefined
  return { progress: { ...progress, isKnown: true, hasDisks }, events }
}

const TO_DISK = ' boots its own disk ('
const TO_LIVE = ' starts the live system ('

function noteSerial(progress: Progress, { serial }: Snapshot): Update {
  const said = serial.slice(progress.read)
  const isOnDisk = said.lastIndexOf(TO_DISK) > said.lastIndexOf(TO_LIVE)
  // Only what follows counts: the live system shows the same words, too, when it lists the image.
  const hasGreeted = isOnDisk && said.slice(said.lastIndexOf(TO_DISK)).includes(GREETING)
  const events: DemoEvent[] = []
  if (isOnDisk && !progress.isOnDisk) events.push({ event: 'to-disk' })
  if (hasGreeted && !progress.hasGreeted) events.push({ event: 'booted' })
  return { progress: { ...progress, isOnDisk, hasGreeted }, events }
}

const isOver = ({ state }: Run) => state !== 'running' && state !== 'stalled'

const describeEnd = (run: Run): DemoEvent =>
  run.state === 'done'
    ? { event: 'flashed', run }
    : { event: 'failed', reason: run.reason ?? `the run is ${run.state}` }

const describeProof = ({ state, seconds, reason }: Proof): DemoEvent =>
  state === 'booted'
    ? { event: 'proved', seconds }
    : { event: 'unproved', reason: reason ?? `the first boot is ${state}` }

function noteRun(progress: Progress, { run }: Snapshot): Update {
  if (run === null) return { progress, events: [] }
  const isNew = progress.run?.id !== run.id
  const wasOver = !isNew && progress.run.isOver
  const ended = isOver(run) && !wasOver
  const proof = noteProof(isNew ? null : progress.run, run)
  const events: readonly DemoEvent[] = [
    ...(isNew ? [{ event: 'flashing' } as const] : []),
    ...(ended ? [describeEnd(run)] : []),
    ...proof.events,
  ]
  const flashes = progress.flashes + (run.state === 'done' && !wasOver ? 1 : 0)
  const noticed = { id: run.id, isOver: isOver(run), isProved: proof.isProved }
  return { progress: { ...progress, run: noticed, flashes }, events }
}

function noteProof(before: Progress['run'], { proof }: Run) {
  const isProved = proof !== null && proof.state !== 'watching'
  const isNews = isProved && before?.isProved !== true
  return { isProved, events: isNews ? [describeProof(proof)] : [] }
}

/** A machine that has gone to its disk asks the server again only when it is switched off and on. */
function noteArming(progress: Progress, { machine, run }: Snapshot): Update {
  // A run of which nothing is heard for a while needs attention, but it is still under way.
  const isFlashing = progress.isArmed && run !== null && !isOver(run)
  const isArmed = isFlashing || (machine?.isArmed ?? false)
  const events: DemoEvent[] = []
  if (isArmed && !progress.isArmed) {
    events.push({ event: 'armed', image: machine?.image ?? null, needsRestart: progress.isOnDisk })
  }
  return { progress: { ...progress, isArmed }, events }
}

/** Once: who has flashed it knows how to do it again. */
function noteWaiting(progress: Progress): Update {
  const { hasDisks, isArmed, run, flashes } = progress
  const isWaiting = hasDisks && !isArmed && (run === null || run.isOver)
  const isNews = isWaiting && !progress.isWaiting && flashes === 0
  return {
    progress: { ...progress, isWaiting },
    events: isNews ? [{ event: 'waiting', again: run !== null }] : [],
  }
}

/** By what the serial line said last: what the machine is doing, for people. */
const ACTIVITIES: readonly (readonly [RegExp, string])[] = [
  [/SeaBIOS/g, 'Starting, and asking the network what to boot'],
  [/ starts the live system \(/g, 'Loading kernel and initrd'],
  [/\] Linux version /g, 'Starting the kernel'],
  [/flasher: boot system /g, 'Looking for the network'],
  [/flasher: fetching /g, 'Fetching the live system'],
  [/flasher: digest verified/g, 'Starting the live system'],
  [/ boots its own disk \(/g, 'Booting its own disk'],
]

/** Says what the machine is doing, for people, by what its serial line said last. */
export function describeActivity(serial: string): string {
  const tail = serial.slice(-200_000)
  const found = ACTIVITIES.map(([pattern, text]) => {
    const at = [...tail.matchAll(pattern)].at(-1)?.index ?? -1
    return { at, text }
  })
  const [last] = found.toSorted((one, two) => two.at - one.at)
  return last === undefined || last.at < 0 ? 'Switching on' : last.text
}
