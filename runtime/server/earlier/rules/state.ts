/** Earlier line: derives the state of a machine in one word, what is true of it, and what happens next. */
import { isArmed, isHeldBack, isUnassigned, type BootPolicy, type Machine } from './machine.ts'

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
      ? {
          state: 'needs-you',
          is: 'Stopped responding during a flash.',
          next: 'Check its screen and network cable; a network boot tries again.',
        }
      : {
          state: 'running',
          is: 'Being flashed.',
          next: 'Nothing to do. The result appears here.',
        }
  }
  return (
    decideTrouble(machine) ??
    decideWorkflow(machine, workflowError) ??
    (isArmed(machine) ? decideArmed(machine, now) : decideIdle(machine))
  )
}

const NEXT_BOOT = {
  local: 'Its next network boot starts its own disk.',
  flash: 'Its next network boot erases the disk and flashes it.',
  tui: 'Its next network boot asks the person at the machine.',
} as const

function decideTrouble(machine: Machine): StateView | null {
  const { boot_policy: policy, failure, offered_at, disarmed_at } = machine
  if (isHeldBack(machine))
    return {
      state: 'needs-you',
      is: 'The disk may be half written: its last flash reported no end, and a backup of the server was restored since.',
      next: 'Its next network boot asks the person at the machine. Save its policy again once you have checked the disk.',
    }
  // A newer offer of a flash replaces the failure.
  if (failure !== null && !(offered_at !== null && offered_at > failure.at)) {
    const { reason } = failure
    const is = reason === null ? 'The flash failed.' : `The flash failed: ${reason}`
    return {
      state: 'failed',
      is,
      next: isArmed(machine) ? 'Its next network boot tries again.' : NEXT_BOOT[IDLE[policy]],
    }
  }
  if (policy !== 'flash') return null
  if (isUnassigned(machine))
    return {
      state: 'needs-you',
      is: 'Set to be flashed, but no image is assigned.',
      next: 'It boots its own disk until you assign one.',
    }
  return disarmed_at === null
    ? null
    : {
        state: 'needs-you',
        is: 'Disarmed: a backup of the server was restored.',
        next: 'It boots its own disk. To flash it, save the policy Flash at every network boot.',
      }
}

/** The end of a flash begins the next cycle. */
const wasJustFlashed = ({ last_flashed_at: flashed, armed_at }: Machine): boolean =>
  flashed === armed_at

/** An order after the workflow counts more than the workflow's end. */
function decideWorkflow(machine: Machine, error: string | null): StateView | null {
  const { last_workflow_status: status, offered_at } = machine
  if (isArmed(machine) && (!wasJustFlashed(machine) || offered_at !== null)) return null
  if (status === 'running')
    return {
      state: 'running',
      is: 'Flashed; its workflow is running.',
      next: 'Nothing to do. The result appears here.',
    }
  if (status !== 'failed') return null
  const is =
    error === null
      ? 'Flashed, but its workflow failed.'
      : `Flashed, but its workflow failed: ${error}.`
  return { state: 'failed', is, next: 'Open its log below.' }
}

export function isOverdue({ sent, offered_at: offered }: Machine, now: Date): boolean {
  if (sent === null || offered === null) return false
  return now.getTime() - Temporal.Instant.from(offered).epochMilliseconds > MAX_SILENT_FLASH_MS
}

function decideArmed(machine: Machine, now: Date): StateView {
  if (machine.sent !== null && machine.offered_at !== null) {
    return isOverdue(machine, now)
      ? {
          state: 'needs-you',
          is: 'The flash began more than two hours ago and has not reported its end. The disk may be half written.',
          next: 'If it boots from the network again, it is flashed again.',
        }
      : {
          state: 'running',
          is: 'The flash has started and not reported its end.',
          next: 'If it boots from the network again, it is flashed again.',
        }
  }
  return wasJustFlashed(machine)
    ? {
        state: 'done',
        word: 'done, armed',
        is: `${nameEnd(machine)} ${NEXT_BOOT.flash}`,
        next: 'To keep what is on the disk, save the policy Boot its own disk.',
      }
    : { state: 'armed', is: 'Ready to be flashed.', next: NEXT_BOOT.flash }
}

const nameEnd = ({ last_workflow_status: status }: Machine): string =>
  status === 'success' ? 'Flashed, and its workflow succeeded.' : 'Flashed.'

const DISCOVERED = {
  local: 'New machine without an image. It boots its own disk.',
  tui: 'New machine without an image. It asks the person at the machine.',
} as const

const WORDS = { local: 'boots its disk', tui: 'asks' } as const

const ASSIGN = 'To flash it, assign an image and save the policy Flash at every network boot.'

function decideIdle(machine: Machine): StateView {
  const { boot_policy: policy, armed_by, last_flashed_at } = machine
  if (last_flashed_at !== null)
    return { state: 'done', is: nameEnd(machine), next: NEXT_BOOT[IDLE[policy]] }
  if (isUnassigned(machine) && armed_by === null) {
    return { state: 'needs-you', is: DISCOVERED[IDLE[policy]], next: ASSIGN }
  }
  return {
    state: 'ready',
    word: WORDS[IDLE[policy]],
    is: NEXT_BOOT[IDLE[policy]],
    next: ASSIGN,
  }
}

/** A disarmed machine with the policy to flash boots its disk. */
const IDLE = { local: 'local', flash: 'local', tui: 'tui' } as const satisfies Record<
  BootPolicy,
  BootPolicy
>
