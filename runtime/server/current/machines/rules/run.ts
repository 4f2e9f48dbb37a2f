/** Current line: the origin of a run, who armed its machine, and which flash a reported end belongs to. */
import { isFlashMode } from './boot-mode.ts'
import { PACKED_FORMAT } from '#appliance/disk-images.ts'
import { isPending } from '#engine/capture/rules/order.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { findPicked, type DiskPick } from '#engine/inventory/rules/machine.ts'
import { plainWords } from '#kit/foundation/printable.ts'
import type { RunEnd } from '#fleet/run/rules/run-record.ts'
import type { Armer, RunDisk, RunImage, RunOrigin } from '#engine/inventory/rules/run.ts'
import type { RecordedOutcome } from '#fleet/machine/rules/flash-events.ts'
import { targetOf, type Cycle, type Machine, type PlannedFlash } from './machine.ts'
import { isSameTime, type TokenMatch } from './token.ts'

/** `findImage` as in `Surroundings`. The record does not know what a person picks in the wizard. */
export function originOf(
  machine: Machine,
  findImage: (ref: string) => CatalogEntry | null,
): RunOrigin {
  const { mac, boot_mode, bty_image_ref: ref, armed_by, capture, cycle } = machine
  const order = cycle.started_at
  if (isPending(capture)) {
    const image = { ...GONE, name: plainWords(capture.name), ref: null, format: PACKED_FORMAT }
    const { disk_serial: name, disk_seen: seen = null } = capture
    const disk = describeDisk(machine, { name, seen })
    return { mac, mode: 'capture', image, disk, armed_by, order }
  }
  const planned = findPlanned(machine)
  if (planned !== null) return { mac, mode: 'flash', ...planned }
  if (!isFlashMode(boot_mode)) {
    return { mac, mode: 'interactive', image: null, disk: null, armed_by, order }
  }
  const image = ref === null ? null : describeImage(ref, findImage(ref))
  const disk = describeDisk(machine, targetOf(machine))
  return { mac, mode: 'flash', image, disk, armed_by, order }
}

/** A boot into a newer cycle has nothing to do with it. */
const findPlanned = ({ planned_as, cycle }: Machine): PlannedFlash | null =>
  planned_as?.order === cycle.started_at || cycle.offered_at === null ? planned_as : null

export const describePlanned = (machine: Machine, image: CatalogEntry): PlannedFlash => ({
  order: machine.cycle.started_at,
  image: describeImage(image.ref, image),
  disk: describeDisk(machine, targetOf(machine)),
  armed_by: machine.armed_by,
})

/** Of this cycle, the one before, one carried over without token or run, or an older one. */
export type EndOwner = 'current' | 'before' | 'carried' | 'other'

interface EndClaim {
  readonly token: TokenMatch
  readonly order: string | null
}

const NO_CLAIM: EndClaim = { token: 'unproven', order: null }

export function decideOwner(machine: Machine, { token, order } = NO_CLAIM): EndOwner {
  const { cycle, last_flashed_at } = machine
  if (token !== 'unproven') return token
  if (order !== null) return decideOrderOwner(cycle, order)
  // It has not come back since it was given something else to do.
  if (cycle.carried && !cycle.planned && cycle.offers === 0) return 'carried'
  return cycle.begun_at === null && last_flashed_at !== null ? 'other' : 'current'
}

function decideOrderOwner({ started_at, before }: Cycle, order: string): EndOwner {
  if (isSameTime(order, started_at)) return 'current'
  return before !== null && isSameTime(order, before.started_at) ? 'before' : 'other'
}

/** Null: the order is open. */
export function decideOutcome(machine: Machine, order: string): RecordedOutcome | null {
  const { cycle } = machine
  if (!isSameTime(cycle.started_at, order)) return decideFormerOutcome(machine, order)
  if (cycle.disarmed_at !== null || cycle.disk_allowed_at !== null) return 'disarmed'
  if (cycle.finished_at !== null) return 'flashed'
  // Before it began, what failed is the flash before it.
  return cycle.failure !== null && cycle.begun_at !== null ? 'failed' : null
}

function decideFormerOutcome({ boot_mode, cycle: { before } }: Machine, order: string) {
  const isOver = before !== null && before.finished_at !== null
  if (isOver && isSameTime(before.started_at, order)) return 'flashed'
  return isFlashMode(boot_mode) ? 'replaced' : 'disarmed'
}

/** Machines and the server arm nothing; letting a machine boot its disk disarms it. */
export function rememberArmer(before: Machine | null, after: Machine, by: Armer): Machine {
  const isPerson = by.actor !== 'pxe-client' && by.actor !== 'system'
  const isCapture = isPending(after.capture) && before?.capture !== after.capture
  const isBegun =
    isCapture || (before?.cycle !== after.cycle && after.cycle.disk_allowed_at === null)
  return isPerson && isBegun ? { ...after, armed_by: by } : after
}

export function whoseEnd(
  machine: Machine,
  owner: EndOwner,
): Pick<RunEnd, 'plannedAt' | 'startedBefore'> {
  const { planned_at, cycle } = machine
  if (owner === 'current' || owner === 'carried') {
    return { plannedAt: latest(planned_at, cycle.offered_at), startedBefore: null }
  }
  const startedBefore = cycle.started_at
  const isOlder = planned_at !== null && latest(planned_at, startedBefore) !== planned_at
  // A flash that ended long ago makes no new run.
  return { plannedAt: owner === 'before' && isOlder ? planned_at : null, startedBefore }
}

/** Some clients take the live boot that they were offered for their plan. */
function latest(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return Temporal.Instant.compare(a, b) < 0 ? b : a
}

const UNKNOWN = { path: null, model: null, tran: null, size_bytes: null } as const
const GONE = { src: null, sha256: null, format: null, size_bytes: null } as const

/** An image without an entry has only its ref. */
function describeImage(ref: string, entry: CatalogEntry | null): RunImage {
  if (entry === null) return { ...GONE, name: ref.slice(0, 12), ref }
  const { name, src, sha256, format, sizeBytes: size_bytes } = entry
  return { name: plainWords(name), src, ref, sha256, format: format || null, size_bytes }
}

function describeDisk({ known_disks }: Machine, pick: DiskPick | null): RunDisk | null {
  if (pick === null) return null
  const found = findPicked(known_disks ?? [], pick)
  const { path, model, tran, size_bytes = null } = found.ok ? found.value : UNKNOWN
  return { path, model, serial: pick.name, tran, size_bytes }
}
