/** Current line: derives the state of a machine in one word, its conditions, and what happens next. */
import { type BootRule, RULES, isFlashMode } from './boot-mode.ts'
import type { RunMode } from '#engine/inventory/rules/run.ts'
import type { BootRuling } from './boot.ts'
import type { QueuePosition } from './queue.ts'
import { isUnassigned, type Machine } from './machine.ts'
import type { MachineState } from '#fleet/machine/rules/states.ts'
import type { PlanRuling } from './plan.ts'
import { renderDiskMismatch } from './target.ts'

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
  if (rulings.boot.rule === 'once') return describeOnce(machine)
  return sayHeldOnce(rulings.boot, decideOrder(machine, rulings))
}

/** Of what it is configured to do. */
function decideOrder(machine: Machine, rulings: Rulings): StateView {
  const view = decideTrouble(machine, rulings) ?? decideUsual(machine, rulings.boot)
  return isHeldByLock(machine, rulings.boot.rule, view)
    ? { ...view, next: 'Locked. Unlock it to flash it.' }
    : view
}

const describeOnce = ({ once }: Machine): StateView => ({
  state: 'once',
  is: `Boots ${once?.entry ?? 'something else'} once.`,
  next: 'Its next network boot starts it. The one after that does what is configured.',
})

/** An order that is not carried out is said beside what the machine does instead. */
const sayHeldOnce = ({ onceObstacle }: BootRuling, view: StateView): StateView =>
  onceObstacle === null
    ? view
    : {
        ...view,
        next: `${view.next} It was to boot something else once, which waits: ${onceObstacle}`,
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
  'withdrawn',
  'expired',
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
const OPENS_WIZARD = 'Its next network boot opens the wizard.'

function decideCapture({ capture }: Machine, { plan, mismatch }: PlanRuling): StateView {
  if (plan.mode === 'interactive' && plan.reason !== null) {
    const next = mismatch === null ? OPENS_WIZARD : OTHER_DISK
    return { state: 'needs-you', is: plan.reason, next }
  }
  const isStarted = capture !== null && capture.offers > 0 && capture.planned_at !== null
  return isStarted ? { state: 'running', ...RUNNING.capture } : usual('capture')
}

function decideTrouble(machine: Machine, rulings: Rulings): StateView | null {
  const { rule } = rulings.boot
  const { plan, mismatch } = rulings.plan
  if (machine.cycle.failure !== null) {
    const { reason } = machine.cycle.failure
    const is = reason === null ? 'The flash failed.' : `The flash failed: ${reason}`
    return { state: 'failed', is, next: decideAfterFailure(machine, rulings) }
  }
  if (LOOPS.has(rule)) {
    return {
      state: 'needs-you',
      is: RULES[rule].is,
      next: 'Find out why, then flash it again or change what it does on network boot.',
    }
  }
  if (!RULES[rule].flashes) return null
  if (mismatch !== null) {
    const is = renderDiskMismatch(mismatch, machine.target_disk_serial ?? '')
    return { state: 'needs-you', is, next: OTHER_DISK }
  }
  return plan.mode === 'interactive' && plan.reason !== null
    ? { state: 'needs-you', is: plan.reason, next: OPENS_WIZARD }
    : null
}

const LOOPS: ReadonlySet<BootRule> = new Set(['loop-to-disk', 'loop-to-person'])

function decideAfterFailure({ boot_mode }: Machine, { boot: { rule }, plan: { plan } }: Rulings) {
  if (!isFlashMode(boot_mode)) return 'The wizard is open on its screen.'
  if (rule === 'disk-allowed')
    return 'Its next network boot starts its own disk. Choose Try again to flash it.'
  if (!RULES[rule].flashes) return RULES[rule].next
  return plan.mode === 'flash' ? 'Its next network boot tries again.' : OPENS_WIZARD
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

const usual = (rule: BootRule): StateView => RULES[rule]

const renderQueued = ({ place, waiting }: QueuePosition): StateView => ({
  state: 'armed',
  is: `Position ${place} of ${waiting} in the queue.`,
  next: 'It is flashed when another machine is done; nothing to do.',
})

const isRunning = (rule: BootRule): rule is keyof typeof RUNNING => Object.hasOwn(RUNNING, rule)
