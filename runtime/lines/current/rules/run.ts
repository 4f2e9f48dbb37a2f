/** Current line: the origin of a run, who armed its machine, and which flash a reported end belongs to. */
import { isPending } from '../../../core/capture/order.ts'
import type { CatalogEntry } from '../../../core/catalog/catalog.ts'
import { findPicked, type DiskPick } from '../../../core/machine/disk-pick.ts'
import { plainWords } from '../../../core/foundation/printable.ts'
import type { RunEnd } from '../../../core/machine/run-transition.ts'
import type { Armer, RunDisk, RunImage, RunOrigin } from '../../../core/machine/run.ts'
import { isFlashMode, targetOf, type Machine } from './machine.ts'

/** `findImage` as in `Surroundings`. What a person picks at the wizard, the record does not know. */
export function originOf(
  machine: Machine,
  findImage: (ref: string) => CatalogEntry | null,
): RunOrigin {
  const { mac, boot_mode, bty_image_ref: ref, armed_by, capture } = machine
  if (isPending(capture)) {
    const image = { ...GONE, name: plainWords(capture.name), ref: null, format: 'img.zst' }
    const { disk_serial: name, disk_seen: seen = null } = capture
    const disk = describeDisk(machine, { name, seen })
    return { mac, mode: 'capture', image, disk, armed_by }
  }
  if (!isFlashMode(boot_mode)) {
    return { mac, mode: 'interactive', image: null, disk: null, armed_by }
  }
  const image = ref === null ? null : describeImage(ref, findImage(ref))
  return { mac, mode: 'flash', image, disk: describeDisk(machine, targetOf(machine)), armed_by }
}

/**
 * The record with who armed it, where they began a cycle; machines and the server arm nothing, and
 * whoever has the machine boot its disk disarms it.
 */
export function noteArmer(before: Machine | null, after: Machine, by: Armer): Machine {
  const isPerson = by.actor !== 'pxe-client' && by.actor !== 'system'
  const isCapture = isPending(after.capture) && before?.capture !== after.capture
  const isBegun =
    isCapture || (before?.cycle !== after.cycle && after.cycle.disk_allowed_at === null)
  return isPerson && isBegun ? { ...after, armed_by: by } : after
}

/**
 * Of which flash a machine speaks that says that one ended. `isFormer`: by its token of the one that
 * was under way when this cycle began, never of this one.
 */
export function whoseEnd(
  machine: Machine,
  isFormer: boolean,
): Pick<RunEnd, 'plannedAt' | 'startedBefore'> {
  const { planned_at, cycle } = machine
  if (!isFormer) return { plannedAt: latest(planned_at, cycle.offered_at), startedBefore: null }
  const startedBefore = cycle.started_at
  const isOlder = planned_at !== null && latest(planned_at, startedBefore) !== planned_at
  return { plannedAt: isOlder ? planned_at : null, startedBefore }
}

/** Some clients take the live boot that they were offered for their plan. */
function latest(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return Temporal.Instant.compare(a, b) < 0 ? b : a
}

const UNKNOWN = { path: null, model: null, tran: null, size_bytes: null } as const
const GONE = { src: null, sha256: null, format: null, size_bytes: null } as const

/** An entry that is gone leaves its ref. */
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
