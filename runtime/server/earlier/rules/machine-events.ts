/** Earlier line: the events that changes of a machine record in the journal. */
import type { MachineEvent } from '#fleet/machine/rules/flash-events.ts'
import type { BootRuling } from './boot.ts'
import type { Machine } from './machine.ts'

export const describe = (machine: Machine): Readonly<Record<string, unknown>> => ({
  image: machine.image,
  boot_policy: machine.boot_policy,
  provisioning_mode: machine.provisioning_mode,
  hostname: machine.hostname,
})

export const describeScript = (
  { mac, boot_policy }: Machine,
  { rule, reason, decision: { kind } }: BootRuling,
): MachineEvent => ({
  kind: 'netboot.pxe.offered',
  summary: `${mac} was sent to ${kind === 'to-disk' ? 'its own disk' : 'the live system'}: ${reason}`,
  details: { boot_policy, offer: kind, rule },
})

interface EndedWorkflow {
  readonly run: string
  readonly workflow: string
  readonly host: string | null
  readonly error: string | null
}

export const describeWorkflowStart = (
  mac: string,
  { run, workflow }: Pick<EndedWorkflow, 'run' | 'workflow'>,
): MachineEvent => ({
  kind: 'machine.workflow.started',
  summary: `The workflow ${workflow} on ${mac} started`,
  details: { run, workflow },
})

export const describeWorkflowEnd = (
  mac: string,
  { run, workflow, host, error }: EndedWorkflow,
): MachineEvent => ({
  kind: error === null ? 'machine.workflow.succeeded' : 'machine.workflow.failed',
  summary:
    error === null
      ? `The workflow ${workflow} on ${mac} succeeded`
      : `The workflow ${workflow} on ${mac} failed: ${error}`,
  details: { run, workflow, host, error },
})
