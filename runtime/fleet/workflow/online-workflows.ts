/** Runs workflows on this server against machines that were just flashed: several at once, each with its folder. */
import { spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { access, chmod, open, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { isAbsolute, join } from 'node:path'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { cijoeArgv } from '#engine/flash/rules/provisioning.ts'
import { Fault, hintOf, ifMissing, renderError } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import {
  isBelow,
  makeFolder,
  moveName,
  removeName,
  removeTree,
  replaceFile,
} from '#kit/host/folders.ts'
import {
  createJobs,
  isOver,
  type Job,
  type JobRecords,
  JobStateSchema,
  QUEUED,
} from '#kit/host/jobs.ts'
import { createQueue } from '#kit/host/queue.ts'
import { type Environment, type Shell, waitForGroup } from '#kit/host/shell.ts'
import { linger, settle } from '#kit/host/watch.ts'
import { type Mac, renderHyphens } from '#kit/net/rules/mac.ts'
import { chooseVariables, listOldRuns, renderTransport } from './rules/online-workflow.ts'

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
      using limit = createLimit(signal, timeLimit, () => 'the workflow exceeded its time limit')
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
    throw new Fault('input-invalid', `the workflow is in an upload folder: ${workflow}`, {
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

/** A clause; null: a file, or may become one. Synchronous: a record is changed in one turn. */
export function findWorkflowFault(path: string): string | null {
  const found = look(path)
  if (found === undefined || found.isFile()) return null
  return found.isDirectory() ? 'it is a folder, not a file' : 'it is a device or pipe, not a file'
}

function look(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    // Best effort: the workflow's start reports what may not be looked at.
    return undefined
  }
}

// The key with which the server logs in to machines: made at its first use, for the server's user alone.

interface SshKey {
  readonly path: string
  /** One line, as in `authorized_keys`. */
  readonly publicLine: string
}

export type SshKeys = ReturnType<typeof createSshKeys>

interface SshKeysOptions {
  readonly folder: string
  readonly shell: Shell
}

/** `ensure` rejects with a Fault if `ssh-keygen` is missing or fails; the next call tries again. */
export function createSshKeys(options: SshKeysOptions) {
  let opening: Promise<SshKey> | null = null
  return {
    ensure(): Promise<SshKey> {
      opening ??= openKey(options).catch((thrown: unknown) => {
        opening = null
        throw thrown
      })
      return opening
    },
  }
}

async function openKey({ folder, shell }: SshKeysOptions): Promise<SshKey> {
  const path = join(folder, 'id_ed25519')
  await makeFolder(folder, 0o700)
  const key = await stat(path).catch(ifMissing(null))
  if (key === null) await makeKey(path, shell)
  else if ((key.mode & 0o077) !== 0) await chmod(path, 0o600)
  const line = await shell.require(['ssh-keygen', '-y', '-f', path])
  return { path, publicLine: line.trim() }
}

/** Made beside its place: after a crash it is whole, or not there. */
async function makeKey(path: string, shell: Shell): Promise<void> {
  const fresh = `${path}.new`
  await removeName(fresh)
  await shell.require(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'flasher', '-f', fresh])
  await chmod(fresh, 0o600)
  await moveName(`${fresh}.pub`, `${path}.pub`)
  await moveName(fresh, path)
}

const WORKFLOW_LOG = 'workflow.log'

const MAX_RUNS = 10
/** Bytes of one log; output beyond it is left out. */
const MAX_LOG_BYTES = 16 * 2 ** 20

interface WorkflowLog extends AsyncDisposable {
  write(bytes: Uint8Array | string): Promise<void>
}

export type WorkflowFolders = ReturnType<typeof createWorkflowFolders>

/** A folder below `root` for each machine, and in it one for each run; the oldest are removed. */
export function createWorkflowFolders(root: string) {
  const folderOf = (mac: Mac) => join(root, mac)
  return {
    root,
    async make(mac: Mac, run: string): Promise<string> {
      const folder = folderOf(mac)
      const path = join(folder, run)
      await makeFolder(path, 0o700)
      for (const old of listOldRuns(await readdir(folder), MAX_RUNS)) {
        await removeTree(join(folder, old))
      }
      return path
    },
    /** Starts at the beginning of a line. Null: no log. */
    readTail: (mac: Mac, run: string, most: number): Promise<string | null> =>
      readTail(join(folderOf(mac), run, WORKFLOW_LOG), most),
    clear: (mac: Mac): Promise<void> => removeTree(folderOf(mac)),
  }
}

async function openWorkflowLog(folder: string): Promise<WorkflowLog> {
  const file = await open(join(folder, WORKFLOW_LOG), 'a', 0o600)
  let left = MAX_LOG_BYTES
  let last: Promise<unknown> = Promise.resolve()
  return {
    async write(given) {
      const bytes = Buffer.from(given)
      const kept = bytes.subarray(0, left)
      const isFull = left > 0 && kept.length < bytes.length
      left -= kept.length
      last = last
        .then(() => file.appendFile(kept))
        .then(() => (isFull ? file.appendFile(CUT) : undefined))
        .catch(() => undefined)
      await last
    },
    async [Symbol.asyncDispose]() {
      await last
      await file.close()
    },
  }
}

const CUT = '\nflasher: the log is full; the rest is missing\n'

async function readTail(path: string, most: number): Promise<string | null> {
  await using file = await open(path).catch(ifMissing(null))
  if (file === null) return null
  const { size } = await file.stat()
  const into = Buffer.alloc(Math.min(size, most))
  const start = size - into.length
  const { bytesRead } = await file.read(into, 0, into.length, start)
  const text = into.toString('utf8', 0, bytesRead)
  return start === 0 ? text : text.slice(text.indexOf('\n') + 1)
}

// Runs a workflow's program and everything that it starts, and ends them together.

interface WorkflowProcess {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** SIGTERM, and SIGKILL a moment later. */
  readonly signal: AbortSignal
  onOutput(bytes: Uint8Array): Promise<void>
}

/** The grace is shorter than the service manager's for us. */
const INTERRUPTION = { by: 'SIGTERM', graceMs: 4000, endsRest: true } as const
/** A program that left the group may keep our pipes open. */
const DRAIN_MS = 1000

/** Returns the exit code (128 and more: ended by a signal). */
async function runWorkflowProcess(options: WorkflowProcess): Promise<number> {
  const { argv, cwd, env, signal, onOutput } = options
  const [program = '', ...words] = argv
  signal.throwIfAborted()
  // Not zx: the program needs its own process group and ends in two steps.
  const child = spawn(program, words, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const drained = Promise.all([child.stdout, child.stderr].map((pipe) => drain(pipe, onOutput)))
  try {
    return await waitForGroup(child, signal, INTERRUPTION)
  } finally {
    await settle(drained, DRAIN_MS)
    child.stdout.destroy()
    child.stderr.destroy()
  }
}

/** The program waits if the log is slower. */
async function drain(pipe: Readable, onOutput: WorkflowProcess['onOutput']): Promise<void> {
  for await (const bytes of pipe) await onOutput(bytes)
}

interface SshWaitOptions {
  /** Read before each attempt; null: not known yet. */
  findHost(): string | null
  readonly port: number
  readonly signal: AbortSignal
  /** Called for each new reason. */
  onProblem(problem: string): void
}

const EVERY_MS = 2000
const MAX_ATTEMPT_MS = 5000

/** Returns the host. Throws the signal's reason when aborted. */
async function awaitSsh(options: SshWaitOptions): Promise<string> {
  const { findHost, port, signal } = options
  let reported = ''
  for (;;) {
    signal.throwIfAborted()
    const host = findHost()
    const problem =
      host === null ? 'no address of the machine is known yet' : await tryBanner(host, port, signal)
    if (problem === null && host !== null) return host
    if (problem !== null && problem !== reported) options.onProblem(problem)
    reported = problem ?? ''
    await linger(EVERY_MS, signal)
  }
}

/** Null: an SSH server greeted. An open port alone proves nothing: it may be a proxy's. */
function tryBanner(host: string, port: number, signal: AbortSignal): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const socket = connect({ host, port, signal })
  socket.setTimeout(MAX_ATTEMPT_MS, () => end('no answer'))
  function end(problem: string | null) {
    socket.destroy()
    resolve(problem === null ? null : `SSH at ${host} port ${port}: ${problem}`)
  }
  socket.on('error', (thrown) => end(renderError(thrown)))
  socket.on('close', () => end('the connection was closed'))
  socket.once('data', (greeting) => {
    end(greeting.toString('latin1').startsWith('SSH-') ? null : 'the service there is not SSH')
  })
  return promise
}

export type ProvisionFiles = ReturnType<typeof createProvisionFiles>

/** `name` becomes part of a path, so it must come from a closed list. */
export function createProvisionFiles(dir: string) {
  const folderOf = (mac: Mac) => join(dir, renderHyphens(mac))
  return {
    list: (mac: Mac): Promise<readonly string[]> => readdir(folderOf(mac)).catch(ifMissing([])),
    /** Null: none is kept. */
    read: (mac: Mac, name: string): Promise<Buffer | null> =>
      readFile(join(folderOf(mac), name)).catch(ifMissing(null)),
    async save(mac: Mac, name: string, bytes: Uint8Array): Promise<void> {
      await makeFolder(folderOf(mac), 0o700)
      await replaceFile(join(folderOf(mac), name), bytes, 0o600)
    },
    remove: (mac: Mac, name: string): Promise<void> => removeName(join(folderOf(mac), name)),
    clear: (mac: Mac): Promise<void> => removeTree(folderOf(mac)),
  }
}
