/** Current line: how a machine's reports change its record, and the events that they record. */
import { noteFlashed, noteFlashFailed } from '../../core/machine/flash-notes.ts'
import type { Inventory } from '../../core/machine/machine.ts'
import type { Signal, Transition } from '../../web/fleet/transition.ts'
import * as contacts from './rules/contact.ts'
import type { Machine } from './rules/machine.ts'
import * as notes from './rules/machine-events.ts'
import { isLateHardware, type decideTokenMatch } from './rules/token.ts'

/** Whose boot the machine proves to be; asked only where it matters. */
type MatchToken = () => ReturnType<typeof decideTokenMatch>

export function applySignal(
  machine: Machine,
  signal: Signal,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  switch (signal.kind) {
    case 'inventory':
      return takeInventory(machine, signal.inventory, now, match)
    case 'boot-file': {
      const after = contacts.noteBootFile(machine, now)
      return { machine: after, notes: notes.noteArmed(machine, after, signal.name) }
    }
    case 'run-began': {
      const after = contacts.noteRunBegan(machine, now)
      return { machine: after, notes: [], ...(after === machine ? {} : { slot: 'planned' }) }
    }
    case 'run-stopped':
      return {
        machine,
        notes: signal.result === 'failed' ? [noteFlashFailed(machine, signal.reason)] : [],
        slot: 'released',
      }
    case 'capture-ended':
      return endCapture(machine, signal, now)
    case 'done':
      return takeDone(machine, now, match)
    case 'failed':
      return takeFailure(machine, signal.reason, now, match)
  }
}

function takeDone(machine: Machine, now: string, match: MatchToken): Transition<Machine> {
  const after = contacts.noteDone(machine, now, isFormer(match))
  return {
    machine: after,
    notes: after === machine ? [] : [noteFlashed(machine, notes.describe(machine))],
  }
}

function endCapture(
  machine: Machine,
  signal: Extract<Signal, { kind: 'capture-ended' }>,
  now: string,
): Transition<Machine> {
  const after = contacts.noteCaptureEnded(machine, signal, now)
  return { machine: after, notes: after === machine ? [] : notes.listCaptureEnds(after) }
}

function takeFailure(
  machine: Machine,
  reason: string | null,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  // What is under way now did not fail.
  const isOld = isFormer(match) && machine.cycle.offers > 0
  return {
    machine: isOld ? machine : contacts.noteFailure(machine, reason, now),
    notes: [noteFlashFailed(machine, reason)],
  }
}

function takeInventory(
  machine: Machine,
  inventory: Inventory,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  const { disks, hardware, secureBoot } = inventory
  const shown = match()
  // The flash is over, and so are the disks as they were before it.
  if (shown.ok && isLateHardware(machine, shown.value, now)) {
    return { machine, notes: hardware === null ? [] : [notes.noteLateHardware(machine)] }
  }
  return {
    machine: contacts.noteDisks(machine, disks, now, secureBoot),
    notes: [notes.noteInventory(machine, inventory)],
  }
}

/** Whether it speaks of the flash of the cycle before. */
function isFormer(match: MatchToken): boolean {
  const shown = match()
  return shown.ok && shown.value === 'before'
}
