/** Current line: how a machine's reports change its record, and the events that they record. */
import { noteFlashed, noteFlashFailed } from '../../fleet/machine/rules/flash-notes.ts'
import type { Inventory } from '../../engine/inventory/rules/machine.ts'
import type { Signal, Transition } from '../routes/transition.ts'
import * as contacts from './rules/contact.ts'
import type { Machine } from './rules/machine.ts'
import * as notes from './rules/machine-events.ts'
import { decideOwner } from './rules/run.ts'
import { isLateHardware, type decideTokenMatch, type TokenMatch } from './rules/token.ts'

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
      return takeDone(machine, signal, now, match)
    case 'failed':
      return takeFailure(machine, signal, now, match)
  }
}

function takeDone(
  machine: Machine,
  { order = null }: Pick<Extract<Signal, { kind: 'done' }>, 'order'>,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  const owner = decideOwner(machine, { token: tokenOf(match), order })
  const after = contacts.noteDone(machine, now, owner)
  // The same end was reported before and is on record already.
  const isNews = after.cycle !== machine.cycle || owner === 'current'
  return {
    machine: after,
    notes: isNews ? [noteFlashed(machine, notes.describe(machine))] : [],
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
  { order = null, reason }: Pick<Extract<Signal, { kind: 'failed' }>, 'order' | 'reason'>,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  const owner = decideOwner(machine, { token: tokenOf(match), order })
  // What is under way now did not fail.
  const isOld = (owner === 'before' || owner === 'other') && machine.cycle.offers > 0
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

function tokenOf(match: MatchToken): TokenMatch {
  const shown = match()
  return shown.ok ? shown.value : 'unproven'
}
