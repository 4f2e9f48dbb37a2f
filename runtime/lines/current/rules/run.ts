/** Current line: what a machine's record says of a flash that begins, and who had it flashed. */
import type { CatalogEntry } from '../../../core/catalog.ts'
import { identifyDisk, type InventoryDisk } from '../../../core/machine.ts'
import type { Armer, RunDisk, RunImage, RunOrigin } from '../../../core/run.ts'
import { isFlashMode, type Machine } from './machine.ts'

/** `findImage` as in `Surroundings`. What a person picks at the wizard, the record does not know. */
export function originOf(
  machine: Machine,
  findImage: (ref: string) => CatalogEntry | null,
): RunOrigin {
  const { mac, boot_mode, bty_image_ref: ref, armed_by } = machine
  if (!isFlashMode(boot_mode)) {
    return { mac, mode: 'interactive', image: null, disk: null, armed_by }
  }
  const image = ref === null ? null : describeImage(ref, findImage(ref))
  return { mac, mode: 'flash', image, disk: describeDisk(machine), armed_by }
}

/** The record with who armed it, where they began a cycle; machines and the server arm nothing. */
export function noteArmer(before: Machine | null, after: Machine, by: Armer): Machine {
  const isPerson = by.actor !== 'pxe-client' && by.actor !== 'system'
  return isPerson && before?.cycle !== after.cycle ? { ...after, armed_by: by } : after
}

/** When it was last told to flash: by a plan, or by a live boot that some clients take for one. */
export function plannedAt({ planned_at, cycle }: Machine): string | null {
  const { offered_at } = cycle
  if (planned_at === null || offered_at === null) return planned_at ?? offered_at
  return Temporal.Instant.compare(planned_at, offered_at) < 0 ? offered_at : planned_at
}

const GONE = { src: null, sha256: null, format: null, size_bytes: null } as const

/** An entry that is gone leaves its ref. */
function describeImage(ref: string, entry: CatalogEntry | null): RunImage {
  if (entry === null) return { ...GONE, name: ref.slice(0, 12), ref }
  const { name, src, sha256, format, sizeBytes: size_bytes } = entry
  return { name, src, ref, sha256, format: format || null, size_bytes }
}

function describeDisk({ known_disks, target_disk_serial: serial }: Machine): RunDisk | null {
  if (serial === null) return null
  const disk: InventoryDisk | undefined = known_disks?.find((each) => identifyDisk(each) === serial)
  const { path = null, model = null, tran = null, size_bytes = null } = disk ?? {}
  return { path, model, serial, tran, size_bytes }
}
