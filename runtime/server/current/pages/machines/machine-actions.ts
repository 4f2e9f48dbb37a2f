/** Decides which buttons a machine's page offers in its present state, and which of them comes first. */
import { isFlashMode } from '#server/current/rules/boot-mode.ts'
import { isPending } from '#engine/capture/rules/order.ts'
import { hasUnfinishedFlash, isHalfWritten, type Machine } from '#server/current/rules/machine.ts'
import { isHeldBack, type MachineView } from '../view/machine-view.ts'

export type MachineButton =
  | 'show-run'
  | 'flash'
  | 'disarm'
  | 'cancel-capture'
  | 'boot-disk'
  | 'refresh'
  | 'unlock'

interface OfferedAction {
  readonly action: MachineButton
  /** At most one. */
  readonly isPrimary: boolean
}

export function listActions(view: MachineView): readonly OfferedAction[] {
  const { machine, boot, run } = view
  // Nothing else makes sense while a disk is being written.
  if (run !== null && !run.stalled) return [{ action: 'show-run', isPrimary: false }]
  if (view.view.state === 'running') return []
  const actions: readonly (OfferedAction | null)[] = [
    run === null ? null : { action: 'show-run', isPrimary: false },
    offerUnlock(machine),
    isPending(machine.capture) ? { action: 'cancel-capture', isPrimary: false } : null,
    offerFlash(view),
    isHeldBack(view) || needsVouching(machine) ? { action: 'boot-disk', isPrimary: false } : null,
    boot.rule === 'disks-known' ? { action: 'refresh', isPrimary: false } : null,
  ]
  return actions.filter((action) => action !== null)
}

/** No capture until somebody vouches for its disk, whatever its mode. */
const needsVouching = (machine: Machine): boolean =>
  !isFlashMode(machine.boot_mode) && hasUnfinishedFlash(machine)

const offerUnlock = ({ locked }: Machine): OfferedAction | null =>
  locked ? { action: 'unlock', isPrimary: true } : null

/** Disarm what is armed; after a failure, flash again first. */
function offerFlash({ machine, view, plan }: MachineView): OfferedAction | null {
  const { boot_mode, bty_image_ref: ref, target_disk_serial: serial, locked } = machine
  if (!isFlashMode(boot_mode) || locked) return null
  if (view.state === 'armed') {
    return isHalfWritten(machine) ? null : { action: 'disarm', isPrimary: false }
  }
  // Another disk or image has to be selected first.
  if (ref === null || serial === null || plan.mismatch !== null) return null
  const { loop_suspected_at, disarmed_at } = machine.cycle
  const isTrouble = view.state === 'failed' || loop_suspected_at !== null || disarmed_at !== null
  return { action: 'flash', isPrimary: isTrouble }
}
