/** Current line: derives the state of a machine in one word, its conditions, and what happens next. */
import { type BootRule, RULES, isFlashMode } from './boot-mode.ts'
import type { RunMode } from '#engine/inventory/rules/run.ts'
import type { BootRuling } from './boot.ts'
import type { QueuePosition } from './queue.ts'
import { isUnassigned, type Machine } from './machine.ts'
import type { PlanRuling } from './plan.ts'
import { renderDiskMismatch } from './target.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'

const t = PAGES.view.machineState

const MACHINE_STATES = [
  'ready',
  'armed',
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

/**
 * By the rulings of script and plan: no page says what the server would not do. `run` null: none.
 */
export function decideState(
  machine: Machine,
  rulings: Rulings,
  run: RunView | null = null,
): StateView {
  // A stalled run counts less than a machine that has asked for its script since.
  if (run !== null && (!run.stalled || rulings.boot.rule !== 'half-written')) return viewRun(run)
  if (rulings.boot.rule === 'capture') return decideCapture(machine, rulings.plan)
  const view = decideTrouble(machine, rulings) ?? decideUsual(machine, rulings.boot)
  return isHeldByLock(machine, rulings.boot.rule, view) ? { ...view, next: t.locked } : view
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
    ? { state: 'needs-you', ...(isCapture ? t.stalledCapture : t.stalled) }
    : { state: 'running', ...(isCapture ? t.capturing : t.flashing) }
}

interface Rulings {
  readonly boot: BootRuling
  readonly plan: PlanRuling
}

function decideCapture({ capture }: Machine, { plan, mismatch }: PlanRuling): StateView {
  if (plan.mode === 'interactive' && plan.reason !== null) {
    const next = mismatch === null ? t.usual.capture.next : t.otherDisk
    return { state: 'needs-you', is: plan.reason, next }
  }
  const isStarted = capture !== null && capture.offers > 0 && capture.planned_at !== null
  return isStarted ? { state: 'running', ...t.running.capture } : usual('capture')
}

function decideTrouble(machine: Machine, { boot, plan }: Rulings): StateView | null {
  const { failure, loop_suspected_at } = machine.cycle
  if (failure !== null) {
    const { reason } = failure
    const is = reason === null ? t.failed.is : fill(t.failed.isWithReason, { reason })
    const next =
      boot.rule === 'disk-allowed'
        ? t.failed.startsDisk
        : isFlashMode(machine.boot_mode)
          ? t.failed.triesAgain
          : t.failed.inWizard
    return { state: 'failed', is, next }
  }
  if (loop_suspected_at !== null || boot.alarms) {
    return { state: 'needs-you', is: t.usual[boot.rule].is, next: t.loopSuspected }
  }
  if (plan.mismatch !== null && plan.plan.mode !== 'exit') {
    const serial = machine.target_disk_serial ?? ''
    const is = renderDiskMismatch(plan.mismatch, serial)
    return { state: 'needs-you', is, next: t.otherDisk }
  }
  return null
}

function decideUsual(machine: Machine, { rule, place }: BootRuling): StateView {
  if (place !== null)
    return machine.cycle.queued_at === null ? usual('queued') : renderQueued(place)
  if (rule === 'disks-known' && isUnassigned(machine)) {
    return { state: 'needs-you', ...t.unassigned }
  }
  const isInLiveSystem = machine.saw_flasher_boot && machine.cycle.offers > 0
  return isInLiveSystem && isRunning(rule) ? { state: 'running', ...t.running[rule] } : usual(rule)
}

const usual = (rule: BootRule): StateView => ({ state: RULES[rule].state, ...t.usual[rule] })

const renderQueued = ({ place, waiting }: QueuePosition): StateView => ({
  state: 'armed',
  is: fill(t.waiting.is, { place, waiting }),
  next: t.waiting.next,
})

const isRunning = (rule: BootRule): rule is keyof typeof t.running => Object.hasOwn(t.running, rule)
