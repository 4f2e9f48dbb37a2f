/** Earlier line: the runs of `cijoe-online`: begun where a record says so, and entered there when they end. */
import { renderError } from '#kit/foundation/fault.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import { openJobRecords } from '#kit/host/jobs.ts'
import { createRecords } from '#kit/host/records.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'
import {
  createOnlineWorkflows,
  WorkflowStateSchema,
  type OnlineWorkflows,
  type WorkflowState,
  createSshKeys,
  type SshKeys,
  createWorkflowFolders,
  type WorkflowFolders,
} from '#fleet/workflow/online-workflows.ts'
import { SYSTEM_EVENT } from '#fleet/state/event-rows.ts'
import { describeWorkflowEnd, describeWorkflowStart } from '../rules/machine-events.ts'
import { endWorkflow, findRun, findTarget } from '../rules/workflow.ts'
import { decideFolders, type LineConfig, type State } from './state.ts'

export interface Workflows extends AsyncDisposable {
  readonly runs: Pick<OnlineWorkflows, 'list' | 'find'>
  readonly folders: Pick<WorkflowFolders, 'readTail'>
  readonly keys: SshKeys
}

interface WorkflowsDependencies {
  readonly config: LineConfig
  readonly state: Pick<State, 'machines' | 'journal' | 'changes'>
  readonly env: Environment
  readonly log: { error(message: string): void }
  now(): Date
}

type WorkflowEvent = ReturnType<typeof describeWorkflowStart>

/** A record that names a new run starts it, and keeps its end. Interrupted runs count as failed. */
export async function openWorkflows(parts: WorkflowsDependencies): Promise<Workflows> {
  const { config, state, env, log, now } = parts
  const folders = decideFolders(config)
  const records = createRecords(folders.workflowRecords)
  const shell = createShell({ env })
  const keys = createSshKeys({ folder: folders.keys, shell })
  const outputs = createWorkflowFolders(folders.workflows)
  await failInterrupted(parts)
  const runs = createOnlineWorkflows({
    folders: outputs,
    keys,
    shell,
    env,
    uploads: [folders.provision, folders.images, folders.boot],
    records: await openJobRecords(records, WorkflowStateSchema, now()),
    settings() {
      const { program, time_limit, parallel, ssh_port } = config.current().workflow
      return { program, timeLimit: time_limit, parallel, sshPort: ssh_port }
    },
    now,
    onStart: (run) => record(state, run.mac, describeWorkflowStart(run.mac, run)),
    onEnd: (run) => enter(parts, run),
  })

  /** Safe to repeat after any change of the record. */
  async function follow(mac: Mac): Promise<void> {
    const machine = state.machines.peek(mac)
    if (machine === null) return runs.clear(mac)
    const run = findRun(machine)
    if (run === null || runs.find(mac, run.id) !== null) return
    const findHost = () => {
      const found = state.machines.peek(mac)
      return found === null ? null : findTarget(found)
    }
    runs.start({ mac, run: run.id, workflow: run.workflow, findHost })
    await runs.cancelOthers(mac, run.id, 'the machine was flashed again')
  }

  const stop = state.changes.listen((change) => {
    const isOfMachine = change.topic === 'machine' || change.topic === 'contact'
    const mac = isOfMachine ? parseMac(change.mac) : null
    if (mac === null || !mac.ok) return
    follow(mac.value).catch((thrown: unknown) => {
      log.error(`workflow of ${mac.value}: ${renderError(thrown)}`)
    })
  })
  return {
    runs,
    folders: outputs,
    keys,
    async [Symbol.asyncDispose]() {
      stop()
      await runs[Symbol.asyncDispose]()
    },
  }
}

async function enter(
  parts: WorkflowsDependencies,
  { mac: text, status, ...ended }: WorkflowState,
): Promise<void> {
  const mac = parseMac(text)
  if (!mac.ok) return
  try {
    await end(parts, mac.value, status === 'completed' ? 'succeed' : 'fail', ended)
  } catch (thrown) {
    parts.log.error(`the end of the workflow on ${mac.value}: ${renderError(thrown)}`)
  }
}

const INTERRUPTED = 'interrupted by a restart of the server'

/** Nothing runs at the start: a record that says so is from a process that was killed. */
async function failInterrupted(parts: WorkflowsDependencies): Promise<void> {
  for (const machine of parts.state.machines.peekAll()) {
    const found = findRun(machine)
    if (found === null) continue
    const { id: run, workflow } = found
    await end(parts, machine.mac, 'fail', { run, workflow, host: null, error: INTERRUPTED })
  }
}

async function end(
  { state, now }: WorkflowsDependencies,
  mac: Mac,
  signal: 'succeed' | 'fail',
  { run, workflow, host, error }: Pick<WorkflowState, 'run' | 'workflow' | 'host' | 'error'>,
): Promise<void> {
  await state.machines.update(
    mac,
    (before) => before && endWorkflow(before, run, signal, now().toISOString()),
  )
  state.changes.announce({ topic: 'machine', mac })
  await record(state, mac, describeWorkflowEnd(mac, { run, workflow, host, error }))
}

const record = (
  { journal }: Pick<State, 'journal'>,
  mac: string,
  note: WorkflowEvent,
): Promise<void> =>
  journal.record({ ...SYSTEM_EVENT, ...note, subject_kind: 'machine', subject_id: mac })
