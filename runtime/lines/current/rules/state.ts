/** Current line: the state of a machine in one word, what is true of it, and what happens next. */
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

const WAIT = 'Nothing to do: it says when it is done.'

const FLASHING: StateView = { state: 'running', is: 'It is being flashed.', next: WAIT }
const STALLED: StateView = {
  state: 'needs-you',
  is: 'It was being flashed, and is not heard of any more.',
  next: 'Look at its screen and its cable; a restart from the network tries again.',
}

interface Rulings {
  readonly boot: BootRuling
  readonly plan: PlanRuling
}

/** What a person must look at first. */
function decideTrouble(machine: Machine, { boot, plan }: Rulings): StateView | null {
  const { failure, loop_suspected_at } = machine.cycle
  if (failure !== null) {
    const is = failure.reason === null ? 'It failed.' : `It failed: ${failure.reason}`
    const next =
      boot.rule === 'disk-allowed'
        ? 'Its next network boot starts its own disk; flash again to have it flashed.'
        : isFlashMode(machine.boot_mode)
          ? 'Its next network boot tries again.'
          : 'The wizard is open on its screen.'
    return { state: 'failed', is, next }
  }
  if (loop_suspected_at !== null || boot.alarms) {
    const { is } = USUAL[boot.rule]
    return { state: 'needs-you', is, next: 'Find out why, then flash again or change its mode.' }
  }
  if (plan.mismatch !== null && plan.plan.mode !== 'exit') {
    const serial = machine.target_disk_serial ?? ''
    const is = renderDiskMismatch(plan.mismatch, serial)
    return { state: 'needs-you', is, next: 'Pick its disk; until then it opens the wizard.' }
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
  is: `Place ${place} of ${waiting} in line: it waits for its turn.`,
  next: 'It is flashed as soon as another machine is done; it asks by itself.',
})

const UNASSIGNED: StateView = {
  state: 'needs-you',
  is: 'It was discovered; nothing is assigned to it.',
  next: 'Pick an image and a disk. Until then it boots its own disk.',
}

/** Once the machine has fetched the live system. */
const RUNNING: Partial<Readonly<Record<BootRule, StateView>>> = {
  'disks-wanted': { state: 'running', is: 'It started to list its disks.', next: WAIT },
  flash: { state: 'running', is: 'It fetched the live system.', next: WAIT },
  'flash-retry': {
    state: 'running',
    is: 'It was sent to flash, and has not reported that it is done.',
    next: 'Should it come back without that, it is flashed again.',
  },
}

const PICK = 'Until then its network boots start its own disk.'

const USUAL: Readonly<Record<BootRule, StateView>> = {
  'ipxe-exit': {
    state: 'ready',
    is: 'It boots its own disk.',
    next: 'Choose a flash mode to have it flashed.',
  },
  wizard: {
    state: 'ready',
    is: 'It opens the wizard.',
    next: 'The person in front of it picks image and disk.',
  },
  'disks-wanted': {
    state: 'armed',
    is: 'Its disks are not known.',
    next: 'Its next network boot lists them, then it boots its own disk.',
  },
  'disks-stale': {
    state: 'ready',
    is: 'Its list of disks is old.',
    next: 'Its next network boot lists them anew, then it boots its own disk.',
  },
  'disks-known': {
    state: 'ready',
    is: 'Its disks are known.',
    next: 'Choose a flash mode to have it flashed.',
  },
  flash: {
    state: 'armed',
    is: 'It is ready to be flashed.',
    next: 'Its next network boot flashes it.',
  },
  'flash-retry': {
    state: 'armed',
    is: 'It was sent to flash, and has not reported that it is done.',
    next: 'Its next network boot flashes it again.',
  },
  flashed: {
    state: 'done',
    is: 'It was flashed.',
    next: 'It boots its disk from now on; flash again to repeat.',
  },
  'disk-allowed': {
    state: 'ready',
    is: 'It boots its own disk: an operator said so after a flash whose end was never reported.',
    next: 'Flash again to have it flashed.',
  },
  'disk-after-flash': {
    state: 'done',
    is: 'It was flashed.',
    next: 'Its next network boot starts its disk, the one after that flashes it again.',
  },
  'loop-to-disk': {
    state: 'needs-you',
    is: 'It started the live system too often without an end; nothing was written.',
    next: 'It boots its own disk.',
  },
  'loop-to-person': {
    state: 'needs-you',
    is: 'Its flash never ended; its disk may be half written.',
    next: 'Its next network boot opens the wizard.',
  },
  'no-live-system': {
    state: 'needs-you',
    is: 'The server has no live system for it.',
    next: 'Fetch one on the Netboot page. Until then it boots its own disk.',
  },
  'half-written': {
    state: 'needs-you',
    is:
      'It waits: its disk may be half written, because the end of a flash was never reported, ' +
      'and the server has no live system to flash it again.',
    next: 'Fetch one on the Netboot page, or boot its disk anyway if you know that the disk is good.',
  },
  queued: {
    state: 'armed',
    is: 'It is ready to be flashed.',
    next: 'Its next network boot waits for its turn, then flashes it.',
  },
  locked: {
    state: 'needs-you',
    is: 'It is locked, and its mode is to flash.',
    next: `Unlock it, or change its mode. ${PICK}`,
  },
  'no-image': { state: 'needs-you', is: 'It has no image.', next: `Pick one. ${PICK}` },
  'unknown-image': {
    state: 'needs-you',
    is: 'Its image is not in the catalog.',
    next: `Pick another, or download it in the cache. ${PICK}`,
  },
  'not-an-image': {
    state: 'needs-you',
    is: 'What is assigned to it is no disk image.',
    next: `Pick another. ${PICK}`,
  },
  'no-target': {
    state: 'needs-you',
    is: 'Its target disk is not picked.',
    next: `Pick one. ${PICK}`,
  },
}
