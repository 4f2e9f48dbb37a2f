/** Current line: derives the state of a machine in one word, its conditions, and what happens next. */
import type { BootRule, BootRuling } from './boot.ts'
import type { QueuePosition } from './queue.ts'
import { isFlashMode, isUnassigned, type Machine } from './machine.ts'
import { renderDiskMismatch, type PlanRuling } from './plan.ts'

const MACHINE_STATES = ['ready', 'armed', 'running', 'done', 'failed', 'needs-you'] as const
export type MachineState = (typeof MACHINE_STATES)[number]

export interface StateView {
  readonly state: MachineState
  /** What is true, in a sentence. Can hold what the machine sent. */
  readonly is: string
  /** What happens next, or what to do. */
  readonly next: string
}

/** A flash that reports its progress. */
export interface RunView {
  /** Nothing was heard of it for a while. */
  readonly stalled: boolean
}

/**
 * From the very rulings that script and plan are made of (`decideBoot`, `decidePlan`), so that the
 * page never says what the server would not do.
 */
export function decideState(
  machine: Machine,
  rulings: { readonly boot: BootRuling; readonly plan: PlanRuling },
  run: RunView | null = null,
): StateView {
  if (run !== null && !run.stalled) return FLASHING
  // The machine asked for its script since; its screen says the same.
  if (run !== null && rulings.boot.rule !== 'half-written') return STALLED
  return decideTrouble(machine, rulings) ?? decideUsual(machine, rulings.boot)
}

const WAIT = 'Nothing to do: it reports when it is done.'

const FLASHING: StateView = { state: 'running', is: 'Being flashed.', next: WAIT }
const STALLED: StateView = {
  state: 'needs-you',
  is: 'Stopped responding during a flash.',
  next: 'Check its screen and network cable; a network boot tries again.',
}

interface Rulings {
  readonly boot: BootRuling
  readonly plan: PlanRuling
}

/** What a person must look at first. */
function decideTrouble(machine: Machine, { boot, plan }: Rulings): StateView | null {
  const { failure, loop_suspected_at } = machine.cycle
  if (failure !== null) {
    const is = failure.reason === null ? 'The flash failed.' : `The flash failed: ${failure.reason}`
    const next =
      boot.rule === 'disk-allowed'
        ? 'Its next network boot starts its own disk. Choose Flash again to retry.'
        : isFlashMode(machine.boot_mode)
          ? 'Its next network boot tries again.'
          : 'The wizard is open on its screen.'
    return { state: 'failed', is, next }
  }
  if (loop_suspected_at !== null || boot.alarms) {
    const { is } = USUAL[boot.rule]
    return { state: 'needs-you', is, next: 'Find out why, then flash it again or change its mode.' }
  }
  if (plan.mismatch !== null && plan.plan.mode !== 'exit') {
    const serial = machine.target_disk_serial ?? ''
    const is = renderDiskMismatch(plan.mismatch, serial)
    return { state: 'needs-you', is, next: 'Select its disk. Until then it opens the wizard.' }
  }
  return null
}

function decideUsual(machine: Machine, { rule, place }: BootRuling): StateView {
  if (place !== null) return machine.cycle.queued_at === null ? USUAL.queued : renderQueued(place)
  if (rule === 'disks-known' && isUnassigned(machine)) return UNASSIGNED
  if (machine.saw_flasher_boot && machine.cycle.offers > 0) return RUNNING[rule] ?? USUAL[rule]
  return USUAL[rule]
}

const renderQueued = ({ place, waiting }: QueuePosition): StateView => ({
  state: 'armed',
  // The place first: rows of a table show the beginning.
  is: `Position ${place} of ${waiting} in the queue.`,
  next: 'It is flashed when another machine is done; nothing to do.',
})

const UNASSIGNED: StateView = {
  state: 'needs-you',
  is: 'New machine, not configured.',
  next: 'Select an image and a disk. Until then it boots its own disk.',
}

/** Once the machine has fetched the live system. */
const RUNNING: Partial<Readonly<Record<BootRule, StateView>>> = {
  'disks-wanted': { state: 'running', is: 'Listing its disks.', next: WAIT },
  flash: { state: 'running', is: 'Started the live system.', next: WAIT },
  'flash-retry': {
    state: 'running',
    is: 'Started to flash and has not reported the end.',
    next: 'If it boots from the network again, it is flashed again.',
  },
}

const PICK = 'Until then it boots its own disk.'

const USUAL: Readonly<Record<BootRule, StateView>> = {
  'ipxe-exit': {
    state: 'ready',
    is: 'Boots its own disk.',
    next: 'Choose a flash mode to flash it.',
  },
  wizard: {
    state: 'ready',
    is: 'Opens the wizard.',
    next: 'The person in front of it chooses image and disk.',
  },
  'disks-wanted': {
    state: 'ready',
    is: 'Disks not listed yet.',
    next: 'Its next network boot lists them, then it boots its own disk.',
  },
  'disks-stale': {
    state: 'ready',
    is: 'The list of its disks is out of date.',
    next: 'Its next network boot lists them again, then it boots its own disk.',
  },
  'disks-known': {
    state: 'ready',
    is: 'Disks listed.',
    next: 'Choose a flash mode to flash it.',
  },
  flash: {
    state: 'armed',
    is: 'Ready to be flashed.',
    next: 'Its next network boot flashes it.',
  },
  'flash-retry': {
    state: 'armed',
    is: 'Started to flash and has not reported the end.',
    next: 'Its next network boot flashes it again.',
  },
  flashed: {
    state: 'done',
    is: 'Flashed.',
    next: 'From now on it boots its disk. Choose Flash again to repeat.',
  },
  'disk-allowed': {
    state: 'ready',
    is: 'Boots its own disk, as an operator chose after a flash whose end was never reported.',
    next: 'Choose Flash again to flash it.',
  },
  'disk-after-flash': {
    state: 'done',
    is: 'Flashed.',
    next: 'Its next network boot starts its disk; the one after that flashes it again.',
  },
  'loop-to-disk': {
    state: 'needs-you',
    is: 'Started the live system too often without finishing; nothing was written.',
    next: 'It boots its own disk.',
  },
  'loop-to-person': {
    state: 'needs-you',
    is: 'Its flash never finished; the disk may be half written.',
    next: 'Its next network boot opens the wizard.',
  },
  'no-live-system': {
    state: 'needs-you',
    is: 'The server has no live system for this machine.',
    next: 'Fetch one on the Netboot page. Until then it boots its own disk.',
  },
  'half-written': {
    state: 'needs-you',
    is:
      'Waiting: its disk may be half written, because a flash never reported its end, ' +
      'and the server has no live system to flash it again.',
    next: 'Fetch one on the Netboot page, or boot the disk anyway if you know that it is good.',
  },
  queued: {
    state: 'armed',
    is: 'Ready to be flashed.',
    next: 'Its next network boot waits for its turn, then flashes it.',
  },
  locked: {
    state: 'needs-you',
    is: 'Locked, but in a flash mode.',
    next: `Unlock it, or change its mode. ${PICK}`,
  },
  'no-image': { state: 'needs-you', is: 'No image assigned.', next: `Select one. ${PICK}` },
  'unknown-image': {
    state: 'needs-you',
    is: 'Its image is not in the catalog.',
    next: `Select another, or download it in the cache. ${PICK}`,
  },
  'not-an-image': {
    state: 'needs-you',
    is: 'Its image is not a disk image.',
    next: `Select another. ${PICK}`,
  },
  'no-target': {
    state: 'needs-you',
    is: 'No target disk selected.',
    next: `Select one. ${PICK}`,
  },
}
