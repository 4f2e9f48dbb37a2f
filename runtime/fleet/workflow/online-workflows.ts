/** Runs workflows on this server against machines that were just flashed: several at once, each with its folder. */
import { access, writeFile } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { z } from 'zod'
import { cijoeArgv } from '#engine/flash/rules/provisioning.ts'
import { Fault, hintOf, renderError } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderHyphens, type Mac } from '#kit/net/rules/mac.ts'
import { chooseVariables, renderTransport } from './rules/online-workflow.ts'
import {
  createJobs,
  isOver,
  JobStateSchema,
  QUEUED,
  type Job,
  type JobRecords,
} from '#kit/host/jobs.ts'
import { isBelow } from '#kit/host/folders.ts'
import { createQueue } from '#kit/host/queue.ts'
import type { Environment, Shell } from '#kit/host/shell.ts'
import type { SshKeys } from './ssh-key.ts'
import { awaitSsh, type SshWaitOptions } from './ssh-wait.ts'
import { findWorkflowFault } from './workflow-place.ts'
import { openWorkflowLog, type WorkflowFolders } from './workflow-folders.ts'
import { runWorkflowProcess, type WorkflowProcess } from './workflow-process.ts'

export const WorkflowStateSchema = JobStateSchema.extend({
  mac: z.string(),
  run: z.string(),
  workflow: z.string(),
  /** Where SSH answered; null: nowhere yet. */
  host: z.string().nullable(),
})

export type WorkflowState = Readonly<z.infer<typeof WorkflowStateSchema>>

interface WorkflowOrder {
  readonly mac: Mac
  readonly run: string
  readonly workflow: string
  /** Where the machine can be reached now; null: not known yet. */
  findHost(): string | null
}

interface WorkflowSettings {
  /** Empty: `cijoe` on the search path. */
  readonly program: string
  /** Seconds, first for the machine to answer, then for the program. Infinity: no limit. */
  readonly timeLimit: number
  readonly sshPort: number
  /** Programs that run at once; read at start. */
  readonly parallel: number
}

interface OnlineWorkflowsDependencies {
  readonly folders: WorkflowFolders
  readonly keys: SshKeys
  readonly shell: Shell
  readonly env: Environment
  settings(): WorkflowSettings
  readonly records: JobRecords<WorkflowState>
  /** Nothing below these folders is run: clients of the server write to them. */
  readonly uploads: readonly string[]
  now(): Date
  /** Called when the run leaves the queue. */
  onStart(state: WorkflowState): Promise<void>
  onEnd(state: WorkflowState): Promise<void>
}

export type OnlineWorkflows = ReturnType<typeof createOnlineWorkflows>

/** Runs that wait for their machines cost next to nothing. */
const MAX_AT_ONCE = 256
const MAX_LISTED = 1000

/** `start` returns at once; a run's state says how it ended. Disposing ends all runs. */
export function createOnlineWorkflows(parts: OnlineWorkflowsDependencies) {
  const jobs = createJobs<WorkflowState>({
    parallel: MAX_AT_ONCE,
    maxListed: MAX_LISTED,
    now: parts.now,
    records: parts.records,
  })
  const inTurn = createQueue(parts.settings().parallel)
  const runsOf = (mac: Mac) => jobs.list().filter(({ state }) => state.mac === mac)
  const isRunning = ({ state }: Job<WorkflowState>) => !isOver(state)

  async function cancelOthers(mac: Mac, run: string | null, reason: string): Promise<void> {
    const others = runsOf(mac).filter((job) => isRunning(job) && job.state.run !== run)
    await Promise.all(others.map(({ key }) => jobs.cancel(key, new Fault('cancelled', reason))))
  }

  return {
    cancelOthers,
    /** Newest first. */
    list: (mac: Mac): readonly WorkflowState[] => runsOf(mac).map(({ state }) => state),
    find: (mac: Mac, run: string): WorkflowState | null =>
      jobs.find(keyOf(mac, run))?.state ?? null,
    start({ mac, run, workflow, findHost }: WorkflowOrder): void {
      const state = { mac, run, workflow, host: null, ...QUEUED }
      jobs.start(keyOf(mac, run), state, {
        async run(job) {
          // Best effort: a journal that cannot be written does not stop a workflow.
          await parts.onStart(job.state).catch(() => undefined)
          await execute(parts, { job, mac, findHost, inTurn })
        },
        onEnd: (job) => parts.onEnd(job.state),
      })
    },
    async clear(mac: Mac): Promise<void> {
      await cancelOthers(mac, null, 'the machine was deleted')
      for (const { key } of runsOf(mac)) jobs.forget(key)
      await parts.folders.clear(mac)
    },
    [Symbol.asyncDispose]: jobs[Symbol.asyncDispose],
  }
}

const keyOf = (mac: Mac, run: string) => `${renderHyphens(mac)}.${run}`

interface Execution extends Pick<WorkflowOrder, 'mac' | 'findHost'> {
  readonly job: Job<WorkflowState>
  inTurn<T>(work: () => Promise<T>): Promise<T>
}

async function execute(parts: OnlineWorkflowsDependencies, order: Execution): Promise<void> {
  const { job, mac, findHost, inTurn } = order
  const { signal } = job
  const { workflow, run } = job.state
  const { program, timeLimit, sshPort: port } = parts.settings()
  const folder = await parts.folders.make(mac, run)
  await using log = await openWorkflowLog(folder)
  const say = (text: string) => log.write(`flasher: ${printable(text)}\n`)
  try {
    const tool = program || 'cijoe'
    await checkInputs(parts, tool, workflow)
    const { path: key } = await parts.keys.ensure()
    const host = await waitForMachine({ findHost, port, signal }, timeLimit, say)
    job.state = { ...job.state, host }
    await say(`SSH answers at ${host}`)
    const config = join(folder, 'transport.toml')
    await writeFile(config, renderTransport({ host, port, key }), { mode: 0o600 })
    const argv = [tool, ...cijoeArgv(workflow, config).slice(1)]
    await inTurn(async () => {
      using limit = createLimit(signal, timeLimit, () => 'the workflow took longer than it may')
      await say(argv.join(' '))
      await runTool(parts, { argv, cwd: folder, signal: limit.signal, onOutput: log.write })
    })
  } catch (thrown) {
    const hint = hintOf(thrown)
    await say(`${renderError(thrown)}${hint === undefined ? '' : `. ${hint}`}`)
    throw thrown
  }
}

async function checkInputs(
  { shell, uploads }: OnlineWorkflowsDependencies,
  tool: string,
  workflow: string,
): Promise<void> {
  if (!(await shell.has(tool))) {
    throw new Fault('tool-missing', `${tool} is not installed on this server`, {
      hint: 'Install it, or set [workflow] program to its path.',
    })
  }
  if (!isAbsolute(workflow)) {
    throw new Fault('input-invalid', `the workflow is not an absolute path: ${workflow}`)
  }
  await access(workflow).catch((cause: unknown) => {
    throw new Fault('input-missing', `the workflow cannot be read: ${workflow}`, { cause })
  })
  // Otherwise whoever may upload could run programs on the server.
  const fault = findWorkflowFault(workflow)
  if (fault !== null) throw new Fault('input-invalid', `${workflow}: ${fault}`)
  if (await isBelow(workflow, uploads)) {
    throw new Fault('input-invalid', `the workflow lies where uploads go: ${workflow}`, {
      hint: 'Keep workflows where only administrators of this host can write.',
    })
  }
}

async function waitForMachine(
  waiting: Omit<SshWaitOptions, 'onProblem'>,
  timeLimit: number,
  say: (text: string) => Promise<void>,
): Promise<string> {
  let problem = ''
  using limit = createLimit(
    waiting.signal,
    timeLimit,
    () => `the machine did not answer: ${problem}`,
  )
  return await awaitSsh({
    ...waiting,
    signal: limit.signal,
    onProblem(text) {
      problem = text
      void say(text)
    },
  })
}

async function runTool(
  { shell, env }: OnlineWorkflowsDependencies,
  { argv, ...running }: Omit<WorkflowProcess, 'env'>,
): Promise<void> {
  const exitCode = await runWorkflowProcess({
    ...running,
    // It ends with us even if we are killed.
    argv: (await shell.has('setpriv')) ? ['setpriv', '--pdeathsig', 'KILL', '--', ...argv] : argv,
    // Output comes while it runs, not at its end.
    env: { ...chooseVariables(env), PYTHONUNBUFFERED: '1' },
  })
  running.signal.throwIfAborted()
  if (exitCode !== 0) throw new Fault('tool-failed', `the workflow ended with code ${exitCode}`)
}

/** The limit of Node's timers. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Aborts with `signal`, or after so many seconds with what `explain` says then. */
function createLimit(signal: AbortSignal, seconds: number, explain: () => string) {
  const late = new AbortController()
  const timer = setTimeout(
    () => late.abort(new Fault('tool-failed', `${explain()} (limit: ${seconds} s)`)),
    Math.min(seconds * 1000, MAX_TIMER_MS),
  )
  if (seconds === Infinity) clearTimeout(timer)
  return {
    signal: AbortSignal.any([signal, late.signal]),
    [Symbol.dispose]: () => clearTimeout(timer),
  }
}
