/** Earlier line: derives the state of a machine in one word, what is true of it, and what happens next. */
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'
import { isArmed, isHeldBack, isUnassigned, type BootPolicy, type Machine } from './machine.ts'

const t = PAGES.earlier.machineState
const shared = PAGES.view.machineState

export interface StateView {
  readonly state: 'ready' | 'armed' | 'running' | 'done' | 'failed' | 'needs-you'
  /** Instead of the state's name, where `ready` says too little. */
  readonly word?: string
  /** Can hold what the machine sent. */
  readonly is: string
  readonly next: string
}

interface Circumstances {
  readonly run: { readonly stalled: boolean } | null
  /** Null: it did not fail, or nobody knows why. */
  readonly workflowError: string | null
  readonly now: Date
}

/** For a flash that reports only its end, as the first clients do. */
export const MAX_SILENT_FLASH_MS = 2 * 3_600_000

/** By the fields that decide the boot script, so no page says what the server would not do. */
export function decideState(
  machine: Machine,
  { run, workflowError, now }: Circumstances,
): StateView {
  if (run !== null) {
    return run.stalled
      ? { state: 'needs-you', ...shared.stalled }
      : { state: 'running', ...shared.flashing }
  }
  return (
    decideTrouble(machine) ??
    decideWorkflow(machine, workflowError) ??
    (isArmed(machine) ? decideArmed(machine, now) : decideIdle(machine))
  )
}

function decideTrouble(machine: Machine): StateView | null {
  const { boot_policy: policy, failure, offered_at, disarmed_at } = machine
  if (isHeldBack(machine)) return { state: 'needs-you', ...t.heldBack }
  // A newer offer of a flash replaces the failure.
  if (failure !== null && !(offered_at !== null && offered_at > failure.at)) {
    const { reason } = failure
    const is = reason === null ? shared.failed.is : fill(shared.failed.isWithReason, { reason })
    return { state: 'failed', is, next: isArmed(machine) ? t.triesAgain : t.next[IDLE[policy]] }
  }
  if (policy !== 'flash') return null
  if (isUnassigned(machine)) return { state: 'needs-you', ...t.noImage }
  return disarmed_at === null ? null : { state: 'needs-you', ...t.disarmed }
}

/** The end of a flash begins the next cycle. */
const wasJustFlashed = ({ last_flashed_at: flashed, armed_at }: Machine): boolean =>
  flashed === armed_at

/** An order after the workflow counts more than the workflow's end. */
function decideWorkflow(machine: Machine, error: string | null): StateView | null {
  const { last_workflow_status: status, offered_at } = machine
  if (isArmed(machine) && (!wasJustFlashed(machine) || offered_at !== null)) return null
  if (status === 'running') return { state: 'running', ...t.workflow.running }
  if (status !== 'failed') return null
  const is = error === null ? t.workflow.failed.is : fill(t.workflow.failed.isWithReason, { error })
  return { state: 'failed', is, next: t.workflow.failed.next }
}

export function isOverdue({ sent, offered_at: offered }: Machine, now: Date): boolean {
  if (sent === null || offered === null) return false
  return now.getTime() - Temporal.Instant.from(offered).epochMilliseconds > MAX_SILENT_FLASH_MS
}

function decideArmed(machine: Machine, now: Date): StateView {
  if (machine.sent !== null && machine.offered_at !== null) {
    return isOverdue(machine, now)
      ? { state: 'needs-you', ...t.overdue }
      : { state: 'running', ...shared.running['flash-retry'] }
  }
  return wasJustFlashed(machine)
    ? { state: 'done', is: nameEnd(machine), next: t.next.flash }
    : { state: 'armed', is: t.armed, next: t.next.flash }
}

const nameEnd = ({ last_workflow_status: status }: Machine): string =>
  status === 'success' ? t.workflow.succeeded : t.flashed

function decideIdle(machine: Machine): StateView {
  const { boot_policy: policy, armed_by, last_flashed_at } = machine
  if (last_flashed_at !== null)
    return { state: 'done', is: nameEnd(machine), next: t.next[IDLE[policy]] }
  if (isUnassigned(machine) && armed_by === null) {
    return { state: 'needs-you', is: t.discovered[IDLE[policy]], next: t.assign }
  }
  return { state: 'ready', word: t.words[IDLE[policy]], is: t.next[IDLE[policy]], next: t.assign }
}

/** A disarmed machine with the policy to flash boots its disk. */
const IDLE = { local: 'local', flash: 'local', tui: 'tui' } as const satisfies Record<
  BootPolicy,
  BootPolicy
>
