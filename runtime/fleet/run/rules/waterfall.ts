/** What runs tell: the parts of their time and their owners, trends of many, and what has changed since on a disk. */
import type { Run } from '#engine/inventory/rules/run.ts'
import { epochOf } from '#kit/foundation/instants.ts'

/** In order; `restart-and-boot`: without a network boot in between. */
export const WATERFALL_PARTS = [
  'firmware',
  'loader',
  'kernel',
  'live',
  'initrd',
  'boot',
  'system',
  'plan',
  'started',
  'write',
  'verify',
  'sync',
  'uefi',
  'restart',
  'first-boot',
  'restart-and-boot',
  'unattributed',
] as const
export type WaterfallPart = (typeof WATERFALL_PARTS)[number]

interface WaterfallBar {
  readonly part: WaterfallPart
  readonly from: string
  readonly to: string
  readonly seconds: number
}

export interface Waterfall {
  readonly bars: readonly WaterfallBar[]
  readonly seconds: number
  /** Time that no part owns. */
  readonly unattributed_seconds: number
}

interface Stamp {
  readonly at: string
  /** Owns the time from here on, if `next` follows. */
  readonly part: WaterfallPart | null
  readonly name: string
  readonly next: string | null
}

const addUp = (list: readonly WaterfallBar[]): number =>
  list.reduce((all, { seconds }) => all + seconds, 0)

/** Null: not ended, or an unknown beginning. */
export function divideRun(run: Run): Waterfall | null {
  if (run.result === null || run.started_at === null) return null
  const stamps = [...listBootStamps(run), ...listPhases(run), ...listProofStamps(run)]
  const bars = stamps.slice(1).flatMap((to, at) => {
    const from = stamps[at]
    return from === undefined ? [] : divide(from, to)
  })
  return {
    bars,
    seconds: addUp(bars),
    unattributed_seconds: addUp(bars.filter(({ part }) => part === 'unattributed')),
  }
}

function divide(from: Stamp, to: Stamp): readonly WaterfallBar[] {
  const ms = epochOf(to.at) - epochOf(from.at)
  if (ms <= 0) return []
  const isOwned = from.part !== null && (from.next === null || from.next === to.name)
  const part = isOwned && from.part !== null ? from.part : 'unattributed'
  return [{ part, from: from.at, to: to.at, seconds: ms / 1000 }]
}

const TO_INITRD = [
  ['script_at', 'loader', 'kernel_at'],
  ['kernel_at', 'kernel', 'initrd_at'],
] as const
const TO_START = ['plan_at', 'plan', 'started'] as const

/** The server sees these stamps itself. */
const SEEN = [...TO_INITRD, ['initrd_at', 'live', 'plan_at'], TO_START] as const
/** With what the live system tells. */
const TOLD = [
  ...TO_INITRD,
  ['initrd_at', 'initrd', 'start_at'],
  ['start_at', 'boot', 'system_at'],
  ['system_at', 'system', 'plan_at'],
  TO_START,
] as const

/** If no BMC turned it on, the reset that the firmware tells stands for power-on. */
function listRows(stamps: Run['stamps']) {
  const rows = stamps?.start_at && stamps.system_at ? TOLD : SEEN
  const first = stamps?.power_on_at ? 'power_on_at' : 'reset_at'
  return [[first, 'firmware', 'script_at'] as const, ...rows]
}

/** Only stamps in order before the start: another boot's own nothing. */
function listBootStamps({ stamps, started_at: started }: Run): readonly Stamp[] {
  const listed: Stamp[] = []
  let limit = started
  for (const [name, part, next] of listRows(stamps).toReversed()) {
    const at = stamps?.[name] ?? null
    if (at === null || limit === null || epochOf(at) > epochOf(limit)) continue
    listed.unshift({ at, part, name, next })
    limit = at
  }
  return listed
}

const OWNED: ReadonlySet<string> = new Set(['started', 'write', 'verify', 'sync', 'uefi'])

function listPhases({ steps, ended_at, proof }: Run): readonly Stamp[] {
  const phases = steps
    .filter(({ phase }) => OWNED.has(phase))
    .map(({ phase, at }) => ({ at, part: partOf(phase), name: phase, next: null }))
  if (ended_at === null) return phases
  const isRestarted = (proof?.first_contact_at ?? null) !== null
  const part = isRestarted ? 'restart' : 'restart-and-boot'
  return [...phases, { at: ended_at, part, name: 'ended', next: isRestarted ? 'contact' : 'seen' }]
}

const partOf = (phase: string): WaterfallPart =>
  WATERFALL_PARTS.find((part) => part === phase) ?? 'unattributed'

/** Time after the end without a proof belongs to no part, and is not shown. */
function listProofStamps({ proof, ended_at }: Run): readonly Stamp[] {
  if (proof === null || proof.seconds === null || ended_at === null) return []
  const { first_contact_at: contact, since, seconds } = proof
  const at = Temporal.Instant.from(since)
    .add({ milliseconds: Math.round(seconds * 1000) })
    .toString({ fractionalSecondDigits: 3 })
  const seen = { at, part: null, name: 'seen', next: null }
  return contact === null
    ? [seen]
    : [{ at: contact, part: 'first-boot', name: 'contact', next: 'seen' }, seen]
}

// Decides when a live system began, by what it says of its own boot with its request for a plan.

export interface BootTimes {
  /** Seconds that its kernel has run. */
  readonly up: number
  /** Seconds from the kernel's start to the system's, after the initrd. */
  readonly system: number
  /** Seconds from hardware reset to kernel; null: the firmware does not tell. */
  readonly firmware: number | null
}

/** ISO 8601, by the server's clock. */
export interface ReportedStamps {
  readonly reset_at?: string
  readonly start_at?: string
  readonly system_at?: string
}

/** A live system that waits for days needs no bars. */
const MAX_SECONDS = 86_400
/** Rounding on both sides, and the request's way. */
const TOLERANCE_MS = 2000

type ToldQuery = Readonly<Record<string, string | undefined>>

/** Null: nothing, or impossible. */
export function parseBootTimes({ up, system, firmware }: ToldQuery): BootTimes | null {
  const [lasts, begins] = [parseSeconds(up), parseSeconds(system)]
  if (lasts === null || begins === null || begins > lasts) return null
  return { up: lasts, system: begins, firmware: parseSeconds(firmware) }
}

function parseSeconds(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,5}(?:\.\d{1,3})?$/.test(text)) return null
  const seconds = Number(text)
  return seconds <= MAX_SECONDS ? seconds : null
}

/** `now` in milliseconds; `asked`: when it last asked for a file of its live system (ISO). */
export function decideReportedStamps(
  { up, system, firmware }: BootTimes,
  now: number,
  asked: string | null,
): ReportedStamps {
  const least = asked === null ? -Infinity : epochOf(asked)
  const start = now - up * 1000
  // A kernel older than the server's answer belongs to another boot.
  if (start < least - TOLERANCE_MS) return {}
  const begun = Math.max(start, least)
  const reported = { start_at: iso(begun), system_at: iso(Math.max(begun, start + system * 1000)) }
  return firmware === null ? reported : { ...reported, reset_at: iso(start - firmware * 1000) }
}

const iso = (ms: number) =>
  Temporal.Instant.fromEpochMilliseconds(Math.round(ms)).toString({ fractionalSecondDigits: 3 })

export const PART_TITLES = {
  firmware: 'Firmware',
  loader: 'Boot loader',
  kernel: 'Kernel',
  live: 'Live system',
  initrd: 'Initrd',
  boot: 'Kernel start and root',
  system: 'Start of the live system',
  plan: 'Plan',
  started: 'Preparation',
  write: 'Write',
  verify: 'Verify',
  sync: 'Flush',
  uefi: 'Boot entry',
  restart: 'Restart and firmware',
  'first-boot': 'First boot',
  'restart-and-boot': 'Restart and first boot',
  unattributed: 'Other',
} as const

/** The newest flash of a machine that wrote something. */
export interface LastWritten {
  /** False: it failed, so nobody knows what the disk holds. */
  readonly isWhole: boolean
  readonly image: string | null
  readonly ref: string | null
  /** Of the image's bytes. */
  readonly sha256: string | null
  readonly model: string | null
  readonly serial: string | null
  /** ISO time of its end. */
  readonly at: string | null
}

interface Assigned {
  /** Null: no image. */
  readonly ref: string | null
  /** Null: not in the catalog. */
  readonly image: { readonly name: string; readonly sha256: string | null } | null
  /** The selected disk's; null: none selected, or it has none. */
  readonly serial: string | null
}

export interface Drift {
  /** `changed-image`: the catalog's image is another now; `other-disk`: not the selected disk. */
  readonly why: 'other-image' | 'changed-image' | 'other-disk'
  readonly written: LastWritten
}

/** Null: no drift, or unknown. A stick's flash has no ref: its digest or name is compared. */
export function decideDrift(assigned: Assigned, written: LastWritten | null): Drift | null {
  if (written === null || !written.isWhole || assigned.ref === null) return null
  const isOther = areOther(assigned.serial, written.serial)
  const why = isOther ? 'other-disk' : compareImages(assigned, written)
  return why === null ? null : { why, written }
}

const areOther = (one: string | null, other: string | null): boolean =>
  one !== null && other !== null && one !== other

function compareImages({ ref, image }: Assigned, written: LastWritten): Drift['why'] | null {
  const { name, sha256 } = image ?? { name: null, sha256: null }
  if (sha256 !== null && sha256 === written.sha256) return null
  const isOther = areOther(sha256, written.sha256)
  if (written.ref === ref) return isOther ? 'changed-image' : null
  return written.ref !== null || isOther || areOther(name, written.image) ? 'other-image' : null
}

export interface EndedFlash {
  readonly mac: string
  /** ISO time. */
  readonly began: string
  readonly isDone: boolean
}

export interface Trend {
  /** A day. */
  readonly name: string
  readonly done: number
  readonly failed: number
}

/** `dayOf`: the day in the viewer's time zone. */
export function countTrends(
  flashes: readonly EndedFlash[],
  days: readonly string[],
  dayOf: (iso: string) => string,
): readonly Trend[] {
  const byDay = Map.groupBy(flashes, ({ began }) => dayOf(began))
  return days.map((name) => {
    const found = byDay.get(name) ?? []
    const done = found.filter(({ isDone }) => isDone).length
    return { name, done, failed: found.length - done }
  })
}
