/** A machine as pages show it: its record, what the rules make of it, its image and its disk. */
import type { CatalogEntry } from '../../../../core/catalog/catalog.ts'
import { identifyDisk, type InventoryDisk } from '../../../../core/machine/machine.ts'
import type { Run } from '../../../../core/machine/run.ts'
import { decideBoot, type BootRuling } from '../../rules/boot.ts'
import { isFlashMode, type Machine } from '../../rules/machine.ts'
import { decidePlan, type PlanRuling } from '../../rules/plan.ts'
import { decideState, type StateView } from '../../rules/state.ts'
import type { Surroundings } from '../../rules/surroundings.ts'

export interface MachineView {
  readonly machine: Machine
  readonly boot: BootRuling
  readonly plan: PlanRuling
  readonly view: StateView
  /** Null: none assigned, or the catalog no longer has it. */
  readonly image: CatalogEntry | null
  /** Null: none picked, or the machine no longer has it (or has two that say the same). */
  readonly disk: InventoryDisk | null
  /** The flash that goes on, where the machine tells of it. */
  readonly run: Run | null
}

export function viewMachine(
  machine: Machine,
  surroundings: Surroundings,
  run: Run | null,
): MachineView {
  const boot = decideBoot(machine, surroundings)
  const plan = decidePlan(machine, surroundings)
  const { bty_image_ref: ref, target_disk_serial: serial } = machine
  const disks = (machine.known_disks ?? []).filter((disk) => identifyDisk(disk) === serial)
  return {
    machine,
    boot,
    plan,
    view: decideState(machine, { boot, plan }, run),
    image: ref === null ? null : surroundings.findImage(ref),
    disk: serial !== null && disks.length === 1 ? (disks[0] ?? null) : null,
    run,
  }
}

/** What people call it. */
export const nameOf = ({ labels, mac }: Machine): string =>
  labels.length === 0 ? mac : labels.join(', ')

/** Whether its next network boot writes a disk. */
export const willFlash = ({ machine, boot, plan }: MachineView): boolean =>
  isFlashMode(machine.boot_mode) &&
  (boot.decision.kind === 'to-live' || boot.rule === 'queued') &&
  plan.plan.mode === 'flash'

/** Whether it sits before its screen and waits for its turn. */
export const isWaiting = ({ machine, boot }: MachineView): boolean =>
  boot.rule === 'queued' && machine.cycle.queued_at !== null

/** Whether its disk is not booted until somebody acts, because it may be half written. */
export const isHeldBack = ({ boot: { rule }, run }: MachineView): boolean =>
  (rule === 'half-written' || rule === 'loop-to-person') && (run === null || run.stalled)

/**
 * Whether a network boot writes a disk as soon as nothing stands in the way any more: a live system
 * that is missing now, a catalog that cannot be fetched. This is what people are asked about.
 */
export const isArmed = ({
  boot_mode,
  bty_image_ref,
  target_disk_serial,
  locked,
}: Machine): boolean =>
  isFlashMode(boot_mode) && bty_image_ref !== null && target_disk_serial !== null && !locked
