/** Earlier line: the workflow that the server runs after `done` ("cijoe-online"), as transitions of the record. */
import { isTargetHost, renderRunId } from '#fleet/workflow/rules/online-workflow.ts'
import type { Machine, WorkflowStatus } from './machine.ts'

type WorkflowSignal = 'begin' | 'succeed' | 'fail'

const NOTHING = { succeed: null, fail: null } as const

/** Null: the signal means nothing then. */
export const NEXT_STATUS = {
  none: { begin: 'running', ...NOTHING },
  running: { begin: 'running', succeed: 'success', fail: 'failed' },
  success: { begin: 'running', ...NOTHING },
  failed: { begin: 'running', ...NOTHING },
} as const satisfies Readonly<
  Record<WorkflowStatus | 'none', Readonly<Record<WorkflowSignal, WorkflowStatus | null>>>
>

const next = ({ last_workflow_status: status }: Machine, signal: WorkflowSignal) =>
  NEXT_STATUS[status ?? 'none'][signal]

interface WorkflowRun {
  readonly id: string
  readonly workflow: string
}

export function findRun(machine: Machine): WorkflowRun | null {
  const { last_workflow_status, last_workflow_output_path, cijoe_workflow_ref } = machine
  if (last_workflow_status !== 'running') return null
  return { id: runOf(last_workflow_output_path), workflow: cijoe_workflow_ref ?? '' }
}

/** The last part of the output path. */
const runOf = (path: string | null): string => path?.split('/').findLast(Boolean) ?? ''

/** If the mode asks for one. `folder`: of the output of all runs. */
export function beginWorkflow(machine: Machine, folder: string, now: string): Machine {
  const { mac, provisioning_mode, cijoe_workflow_ref } = machine
  if (provisioning_mode !== 'cijoe-online' || cijoe_workflow_ref === null) return machine
  return {
    ...machine,
    last_workflow_status: next(machine, 'begin'),
    last_workflow_run_at: now,
    last_workflow_output_path: `${folder}/${mac}/${renderRunId(now)}/`,
    disk_boot: null,
  }
}

/** The same record for a run that is not the newest: a late end stands for no other. */
export function endWorkflow(
  machine: Machine,
  run: string,
  signal: Exclude<WorkflowSignal, 'begin'>,
  now: string,
): Machine {
  const status = next(machine, signal)
  if (status === null || runOf(machine.last_workflow_output_path) !== run) return machine
  const ended = { ...machine, last_workflow_status: status, updated_at: now }
  return signal === 'succeed' ? { ...ended, last_known_good: describeGood(machine, now) } : ended
}

const describeGood = (machine: Machine, at: string) => ({
  image: machine.image,
  provisioning_mode: machine.provisioning_mode,
  cijoe_workflow_ref: machine.cijoe_workflow_ref,
  at,
})

interface BootContact {
  readonly now: string
  readonly ip: string | null
}

/**
 * For a machine whose run waits. A boot from its own disk is the flashed system with its present
 * address; after a boot into the live system, no known address is the flashed system's.
 */
export function rememberBoot(
  machine: Machine,
  isToDisk: boolean,
  { now, ip }: BootContact,
): Machine {
  if (machine.last_workflow_status !== 'running') return machine
  const disk_boot = isToDisk && ip !== null ? { at: now, ip } : null
  return disk_boot === null && machine.disk_boot === null ? machine : { ...machine, disk_boot }
}

/**
 * By host name, else by the address of the newest boot from its own disk after `done`: earlier
 * addresses were the live system's. Null: unknown yet.
 */
export function findTarget({ hostname, disk_boot }: Machine): string | null {
  const host = hostname ?? disk_boot?.ip ?? null
  return host !== null && isTargetHost(host) ? host : null
}
