/** Current line: derives the state of a machine in one word, its conditions, and what happens next. */
import { type BootRule, RULES, isFlashMode } from './boot-mode.ts'
import type { RunMode } from '#engine/inventory/rules/run.ts'
import type { BootRuling } from './boot.ts'
import type { QueuePosition } from './queue.ts'
import { isUnassigned, type Machine } from './machine.ts'
import type { PlanRuling } from './plan.ts'
import { renderDiskMismatch } from './target.ts'

const MACHINE_STATES = [
  'ready',
  'armed',
  'paused',
  'capture',
  'running',
  'done',
  'failed',
  'needs-you',
] as const
export type MachineState = (typeof MACHINE_STATES)[number]

export interface StateView {
  readonly state: MachineState
  /** Instead of the state's name, where `ready` says too little. */
  readonly word?: string
  /** Can hold what the machine sent. */
  readonly is: string
  readonly next: string
}

export interface RunView {
  readonly stalled: boolean
  readonly mode: RunMode
}

/** By the rulings of script and plan: no page says what the server would not do. */
export function decideState(
  machine: Machine,
  rulings: Rulings,
  run: RunView | null = null,
): StateView {
  // A stalled run counts less than a machine that has asked for its script since.
  if (run !== null && (!run.stalled || rulings.boot.rule !== 'half-written')) return viewRun(run)
  if (rulings.boot.rule === 'capture') return decideCapture(machine, rulings.plan)
  const view = decideTrouble(machine, rulings) ?? decideUsual(machine, rulings.boot)
  return isHeldByLock(machine, rulings.boot.rule, view)
    ? { ...view, next: 'It is locked: nothing flashes it until somebody unlocks it.' }
    : view
}

/** A lock decides what is next wherever a flash would be suggested. */
const isHeldByLock = ({ locked }: Machine, rule: BootRule, { state }: StateView): boolean =>
  locked && state !== 'running' && (state === 'failed' || SUGGESTS_FLASH.has(rule))

const SUGGESTS_FLASH: ReadonlySet<BootRule> = new Set([
  'ipxe-exit',
  'disks-known',
  'flashed',
  'disk-allowed',
  'disarmed',
])

function viewRun({ mode, stalled }: RunView): StateView {
  const isCapture = mode === 'capture'
  return stalled
    ? {
        state: 'needs-you',
        ...(isCapture
          ? {
              is: 'Stopped responding during a capture.',
              next: 'Check its screen and network cable; a network boot tries again.',
            }
          : {
              is: 'Stopped responding during a flash.',
              next: 'Check its screen and network cable; a network boot tries again.',
            }),
      }
    : {
        state: 'running',
        ...(isCapture
          ? { is: 'Being captured.', next: 'Nothing to do: it reports when it is done.' }
          : { is: 'Being flashed.', next: 'Nothing to do: it reports when it is done.' }),
      }
}

interface Rulings {
  readonly boot: BootRuling
  readonly plan: PlanRuling
}

/** By the rule that chose its script. */
const USUAL = {
  'ipxe-exit': {
    word: 'boots its disk',
    is: 'Boots its own disk.',
    next: 'Select Flash once to flash it.',
  },
  wizard: {
    word: 'opens the wizard',
    is: 'Opens the wizard.',
    next: 'The person in front of it chooses image and disk.',
  },
  'disks-wanted': {
    word: 'lists its disks',
    is: 'Disks not listed yet.',
    next: 'Its next network boot lists them, then it boots its own disk.',
  },
  'disks-stale': {
    word: 'lists its disks',
    is: 'The list of its disks is out of date.',
    next: 'Its next network boot lists them again, then it boots its own disk.',
  },
  'disks-known': {
    word: 'disks listed',
    is: 'Disks listed.',
    next: 'Select Flash once to flash it.',
  },
  capture: {
    is: 'A capture is ordered.',
    next: 'Its next network boot makes the image and uploads it.',
  },
  flash: { is: 'Ready to be flashed.', next: 'Its next network boot flashes it.' },
  'flash-retry': {
    is: 'Started to flash and has not reported the end.',
    next: 'Its next network boot flashes it again.',
  },
  flashed: { is: 'Flashed.', next: 'From now on it boots its disk. Choose Flash again to repeat.' },
  'disk-allowed': {
    word: 'boots its disk',
    is: 'Boots its own disk, as an operator chose after a flash whose end was never reported.',
    next: 'It is flashed again once somebody arms it.',
  },
  disarmed: {
    is: 'Not armed: an older state of the server was restored.',
    next: 'It is flashed once somebody arms it. Until then it boots its own disk.',
  },
  withdrawn: {
    is: 'Disarmed.',
    next: 'It is flashed once somebody arms it. Until then it boots its own disk.',
  },
  expired: {
    is: 'Its order to flash has expired.',
    next: 'It is flashed once somebody arms it. Until then it boots its own disk.',
  },
  paused: {
    is: 'Paused with its batch.',
    next: 'Until you resume, this machine boots from its own disk.',
  },
  'held-back': {
    is: 'A flash of it never reported its end, and its order was taken away since; the disk may be half written.',
    next: 'Its next network boot opens the wizard. Flash it again, or boot the disk anyway if you know that it is good.',
  },
  'disk-after-flash': {
    is: 'Flashed.',
    next: 'Its next network boot starts its disk; the one after that flashes it again.',
  },
  'loop-to-disk': {
    is: 'Started the live system too often without finishing; nothing was written.',
    next: 'It boots its own disk.',
  },
  'loop-to-person': {
    is: 'Its flash never finished; the disk may be half written.',
    next: 'Its next network boot opens the wizard.',
  },
  'no-live-system': {
    is: 'The server has no live system for this machine.',
    next: 'Fetch one on the Netboot page. Until then it boots its own disk.',
  },
  'half-written': {
    is: 'Waiting: its disk may be half written, because a flash never reported its end, and the server has no live system to flash it again.',
    next: 'Fetch one on the Netboot page, or boot the disk anyway if you know that it is good.',
  },
  queued: {
    is: 'Ready to be flashed.',
    next: 'Its next network boot waits for its turn, then flashes it.',
  },
  locked: {
    is: 'Locked, but set to be flashed.',
    next: 'Unlock it, or change what it does on network boot. Until then it boots its own disk.',
  },
  'no-image': { is: 'No image assigned.', next: 'Select one. Until then it boots its own disk.' },
  'unknown-image': {
    is: 'Its image is not in the catalog.',
    next: 'Select another, or download it in the cache. Until then it boots its own disk.',
  },
  'not-an-image': {
    is: 'Its image is not a disk image.',
    next: 'Select another. Until then it boots its own disk.',
  },
  'no-target': {
    is: 'No target disk selected.',
    next: 'Select one. Until then it boots its own disk.',
  },
} as const

/** By the rule that chose its script. */
const RUNNING = {
  capture: { is: 'Started the live system.', next: 'Nothing to do: it reports when it is done.' },
  'disks-wanted': { is: 'Listing its disks.', next: 'Nothing to do: it reports when it is done.' },
  flash: { is: 'Started the live system.', next: 'Nothing to do: it reports when it is done.' },
  'flash-retry': {
    is: 'Started to flash and has not reported the end.',
    next: 'If it boots from the network again, it is flashed again.',
  },
} as const

const OTHER_DISK = 'Select its disk. Until then it opens the wizard.'

function decideCapture({ capture }: Machine, { plan, mismatch }: PlanRuling): StateView {
  if (plan.mode === 'interactive' && plan.reason !== null) {
    const next = mismatch === null ? USUAL.capture.next : OTHER_DISK
    return { state: 'needs-you', is: plan.reason, next }
  }
  const isStarted = capture !== null && capture.offers > 0 && capture.planned_at !== null
  return isStarted ? { state: 'running', ...RUNNING.capture } : usual('capture')
}

function decideTrouble(machine: Machine, { boot, plan }: Rulings): StateView | null {
  const { failure, loop_suspected_at } = machine.cycle
  if (failure !== null) {
    const { reason } = failure
    const is = reason === null ? 'The flash failed.' : `The flash failed: ${reason}`
    const next =
      boot.rule === 'disk-allowed'
        ? 'Its next network boot starts its own disk. Choose Try again to flash it.'
        : isFlashMode(machine.boot_mode)
          ? 'Its next network boot tries again.'
          : 'The wizard is open on its screen.'
    return { state: 'failed', is, next }
  }
  if (loop_suspected_at !== null || boot.alarms) {
    return {
      state: 'needs-you',
      is: USUAL[boot.rule].is,
      next: 'Find out why, then flash it again or change what it does on network boot.',
    }
  }
  if (plan.mismatch !== null && plan.plan.mode !== 'exit') {
    const serial = machine.target_disk_serial ?? ''
    const is = renderDiskMismatch(plan.mismatch, serial)
    return { state: 'needs-you', is, next: OTHER_DISK }
  }
  return null
}

function decideUsual(machine: Machine, { rule, place }: BootRuling): StateView {
  if (place !== null)
    return machine.cycle.queued_at === null ? usual('queued') : renderQueued(place)
  if (rule === 'disks-known' && isUnassigned(machine)) {
    return {
      state: 'needs-you',
      is: 'Discovered, nothing selected yet.',
      next: 'Select an image and a disk. Until then it boots its own disk.',
    }
  }
  const isInLiveSystem = machine.saw_flasher_boot && machine.cycle.offers > 0
  return isInLiveSystem && isRunning(rule) ? { state: 'running', ...RUNNING[rule] } : usual(rule)
}

const usual = (rule: BootRule): StateView => ({ state: RULES[rule].state, ...USUAL[rule] })

const renderQueued = ({ place, waiting }: QueuePosition): StateView => ({
  state: 'armed',
  is: `Position ${place} of ${waiting} in the queue.`,
  next: 'It is flashed when another machine is done; nothing to do.',
})

const isRunning = (rule: BootRule): rule is keyof typeof RUNNING => Object.hasOwn(RUNNING, rule)
