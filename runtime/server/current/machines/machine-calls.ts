/** What the forms and buttons of a machine's page do, as requests of the API. */
import type { CurlCall } from '#server/pages/curl-block.ts'
import { isFlashMode } from './rules/boot-mode.ts'
import {
  channelOf,
  namesWith,
  type Machine,
  hasUnfinishedFlash,
  isHalfWritten,
} from './rules/machine.ts'
import { type MachineView, isHeldBack } from '#server/current/view/machine-view.ts'
import { isWaiting } from '#fleet/once/rules/once-order.ts'
import { isPending } from '#engine/capture/rules/order.ts'

/** As it is, because `PUT` replaces everything. */
export function callSave(machine: Machine): CurlCall {
  const { mac, boot_mode, bty_image_ref, target_disk_serial, sanboot_drive } = machine
  const intent = { bty_image_ref, boot_mode, target_disk_serial, sanboot_drive }
  const channel = channelOf(machine)
  const chosen = channel === null ? {} : { channel }
  const asked = namesWith('put').flatMap((name) =>
    name === 'channel' ? [] : [[name, machine[name]]],
  )
  return {
    method: 'PUT',
    path: `/machines/${mac}`,
    body: { ...intent, ...chosen, ...Object.fromEntries(asked) },
    scope: isFlashMode(boot_mode) ? 'flash' : 'machines',
  }
}

export const callFlash = ({ mac }: Machine): CurlCall => ({
  method: 'POST',
  path: `/machines/${mac}/flash`,
  body: {},
  scope: 'flash',
})

export const callDelete = ({ mac }: Pick<Machine, 'mac'>): CurlCall => ({
  method: 'DELETE',
  path: `/machines/${mac}`,
  scope: 'machines',
})

/** An action without a route of its own. */
export const callAction = (
  { mac }: Pick<Machine, 'mac'>,
  action: 'boot-disk' | 'disarm' | 'refresh' | 'lock' | 'unlock',
): CurlCall => ({
  method: 'POST',
  path: '/machines/bulk',
  body: { action, macs: [mac] },
  scope: 'machines',
})

/** Only buttons without a question. `canUndo`: the newest edit can be undone. */
export function listButtonCalls(view: MachineView, canUndo: boolean): readonly CurlCall[] {
  const { machine } = view
  const { mac, locked } = machine
  const offered = new Set(listActions(view).map(({ action }) => action))
  const calls: readonly (CurlCall | null)[] = [
    canUndo
      ? {
          method: 'POST',
          path: `/machines/${mac}/undo`,
          scope: 'machines',
          label: 'Undo',
        }
      : null,
    offered.has('cancel-capture')
      ? {
          method: 'DELETE',
          path: `/machines/${mac}/capture`,
          scope: 'flash',
          label: 'Cancel the capture',
        }
      : null,
    offered.has('cancel-once')
      ? {
          method: 'DELETE',
          path: `/machines/${mac}/once`,
          scope: 'flash',
          label: 'Cancel the other boot',
        }
      : null,
    offered.has('disarm') ? { ...callAction(machine, 'disarm'), label: 'Disarm' } : null,
    offered.has('refresh')
      ? { ...callAction(machine, 'refresh'), label: 'Refresh inventory' }
      : null,
    locked
      ? { ...callAction(machine, 'unlock'), label: 'Unlock' }
      : { ...callAction(machine, 'lock'), label: 'Lock' },
  ]
  return calls.filter((call) => call !== null)
}

export type MachineButton =
  | 'show-run'
  | 'resume'
  | 'flash'
  | 'disarm'
  | 'cancel-capture'
  | 'cancel-once'
  | 'boot-disk'
  | 'refresh'
  | 'unlock'

interface OfferedAction {
  readonly action: MachineButton
  /** At most one. */
  readonly isPrimary: boolean
}

/** The machine goes on with the others of its batch, or without an order. */
const PAUSED: readonly OfferedAction[] = [
  { action: 'resume', isPrimary: true },
  { action: 'disarm', isPrimary: false },
]

export function listActions(view: MachineView): readonly OfferedAction[] {
  const { machine, boot, run } = view
  // Nothing else makes sense while a disk is being written.
  if (run !== null && !run.stalled) return [{ action: 'show-run', isPrimary: false }]
  if (view.view.state === 'running') return []
  const actions: readonly (OfferedAction | null)[] = [
    run === null ? null : { action: 'show-run', isPrimary: false },
    offerUnlock(machine),
    ...offerCancels(machine),
    ...(boot.rule === 'paused' ? PAUSED : [offerFlash(view)]),
    isHeldBack(view) || needsVouching(machine) ? { action: 'boot-disk', isPrimary: false } : null,
    boot.rule === 'disks-known' ? { action: 'refresh', isPrimary: false } : null,
  ]
  return actions.filter((action) => action !== null)
}

const offerCancels = ({ capture, once }: Machine): readonly OfferedAction[] => [
  ...(isPending(capture) ? ([{ action: 'cancel-capture', isPrimary: false }] as const) : []),
  ...(isWaiting(once) ? ([{ action: 'cancel-once', isPrimary: false }] as const) : []),
]

/** No capture until somebody vouches for its disk, whatever its mode. */
const needsVouching = (machine: Machine): boolean =>
  !isFlashMode(machine.boot_mode) && hasUnfinishedFlash(machine)

const offerUnlock = ({ locked }: Machine): OfferedAction | null =>
  locked ? { action: 'unlock', isPrimary: true } : null

const mayBeFlashed = ({ boot_mode, locked, capture }: Machine): boolean =>
  isFlashMode(boot_mode) && !locked && !isPending(capture)

/** Disarm what is armed; after a failure, flash again first. */
function offerFlash({ machine, view, plan }: MachineView): OfferedAction | null {
  const { bty_image_ref: ref, target_disk_serial: serial } = machine
  if (!mayBeFlashed(machine)) return null
  if (view.state === 'armed') {
    return isHalfWritten(machine) ? null : { action: 'disarm', isPrimary: false }
  }
  // Another disk or image has to be selected first.
  if (ref === null || serial === null || plan.mismatch !== null) return null
  const { loop_suspected_at, disarmed_at } = machine.cycle
  const isTrouble = view.state === 'failed' || loop_suspected_at !== null || disarmed_at !== null
  return { action: 'flash', isPrimary: isTrouble }
}
