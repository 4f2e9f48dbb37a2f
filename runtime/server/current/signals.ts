/** Current line: how a machine's reports change its record, and the events that they record. */
import { describeFlashed, describeFlashFailed } from '#fleet/machine/rules/flash-events.ts'
import type { Inventory } from '#engine/inventory/rules/machine.ts'
import type { Signal, Transition } from '#server/routes/transition.ts'
import * as contacts from './rules/contact.ts'
import type { Machine } from './rules/machine.ts'
import * as events from './rules/machine-events.ts'
import { decideOwner } from './rules/run.ts'
import { isLateHardware, type decideTokenMatch, type TokenMatch } from './rules/token.ts'

/** Called only where it matters. */
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
      const after = contacts.rememberBootFile(machine, now)
      return { machine: after, events: events.describeArmed(machine, after, signal.name) }
    }
    case 'run-began': {
      const after = contacts.rememberRunBegan(machine, now)
      return { machine: after, events: [], ...(after === machine ? {} : { slot: 'planned' }) }
    }
    case 'run-stopped':
      return {
        machine,
        events: signal.result === 'failed' ? [describeFlashFailed(machine, signal.reason)] : [],
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
  const after = contacts.rememberDone(machine, now, owner)
  // The same end was reported and recorded before.
  const isNews = after.cycle !== machine.cycle || owner === 'current'
  return {
    machine: after,
    events: isNews ? [describeFlashed(machine, nameArmer(machine))] : [],
  }
}

const nameArmer = (machine: Machine) => ({
  ...events.describe(machine),
  armed_by: machine.armed_by?.actor ?? null,
})

function endCapture(
  machine: Machine,
  signal: Extract<Signal, { kind: 'capture-ended' }>,
  now: string,
): Transition<Machine> {
  const after = contacts.rememberCaptureEnded(machine, signal, now)
  return { machine: after, events: after === machine ? [] : events.listCaptureEnds(after) }
}

function takeFailure(
  machine: Machine,
  { order = null, reason }: Pick<Extract<Signal, { kind: 'failed' }>, 'order' | 'reason'>,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  const owner = decideOwner(machine, { token: tokenOf(match), order })
  // The flash under way did not fail.
  const isOld = (owner === 'before' || owner === 'other') && machine.cycle.offers > 0
  return {
    machine: isOld ? machine : contacts.rememberFailure(machine, reason, now),
    events: [describeFlashFailed(machine, reason)],
  }
}

function takeInventory(
  machine: Machine,
  inventory: Inventory,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  const { hardware } = inventory
  const shown = match()
  // The flash is over, and the list of disks is from before it.
  if (shown.ok && isLateHardware(machine, shown.value, now)) {
    const after = contacts.rememberLateHardware(machine, inventory)
    return {
      machine: after,
      events: hardware === null ? [] : [events.describeLateHardware(machine)],
    }
  }
  return {
    machine: contacts.rememberDisks(machine, inventory, now),
    events: [events.describeInventory(machine, inventory)],
  }
}

function tokenOf(match: MatchToken): TokenMatch {
  const shown = match()
  return shown.ok ? shown.value : 'unproven'
}
