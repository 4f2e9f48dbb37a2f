/** Starts other programs: tools through zx, and children that run as long as we do or stream data themselves. */
import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { addAbortListener } from 'node:events'
import { access, constants as files } from 'node:fs/promises'
import { constants } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'
import { $ } from 'zx/core'
import { debianPackageOf } from '#kit/foundation/tool.ts'
import { Fault } from '#kit/foundation/fault.ts'

interface ToolOptions {
  /** Bytes for the tool's standard input; none when absent. */
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly signal?: AbortSignal
  /** Milliseconds after which the tool is ended. */
  readonly timeout?: number
}

export interface Finished {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface Shell {
  /** Runs a tool to its end and returns its output; a non-zero exit code is a value here. */
  run(argv: readonly string[], options?: ToolOptions): Promise<Finished>
  /** As `run`, but a non-zero exit code is a Fault `tool-failed` with the tool's own words. */
  require(argv: readonly string[], options?: ToolOptions): Promise<string>
  /** Whether a tool is installed; by its name, or its absolute path. */
  has(tool: string): Promise<boolean>
  /**
   * A child whose standard input and output are pipes to us; its stderr is collected by the caller.
   * `held`: open files that it inherits, and so keeps open as long as it lives.
   */
  pipe(argv: readonly string[], held?: readonly number[]): ChildProcessWithoutNullStreams
  /**
   * Runs a program that speaks to the person itself: both its outputs go to our standard error as
   * they come, it has no input. Gives its exit code (128 and more: ended by a signal). An abort
   * interrupts it and its children, and kills what is left of them a moment later.
   */
  show(argv: readonly string[], options?: Pick<ToolOptions, 'env' | 'signal'>): Promise<number>
}

/** Tools of /usr/sbin are wanted even where a user's PATH lacks it. */
const withSystemFolders = (path: string) => {
  const folders = path.split(delimiter).filter(Boolean)
  const missing = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'].filter((dir) => !folders.includes(dir))
  return [...folders, ...missing].join(delimiter)
}

export type Environment = Readonly<Record<string, string | undefined>>

const OF_BASH = /^(BASH_ENV|BASH_FUNC_.*|BASHOPTS|SHELLOPTS)$/

/**
 * What bash takes from its environment would run before a tool and write between its lines: files,
 * functions, options. As the outermost shell it reads the user's `.bashrc` too, so it is made an inner one.
 */
function withoutBash(env: Environment): Record<string, string> {
  const others = Object.entries(env).filter(([name]) => !OF_BASH.test(name))
  return { ...Object.fromEntries(others), SHLVL: '1' }
}

/** Tools start in `env`, and its PATH says where they are found. */
export function createShell({ env: given }: { readonly env: Environment }): Shell {
  const searchPath = withSystemFolders(given['PATH'] ?? '')
  // Messages are read by our parsers, so they must not depend on the user's language.
  const env = { ...given, PATH: searchPath, LC_ALL: 'C.UTF-8' }

  async function has(tool: string) {
    const candidates = isAbsolute(tool)
      ? [tool]
      : searchPath.split(delimiter).map((dir) => join(dir, tool))
    const found = await Promise.allSettled(
      candidates.map((candidate) => access(candidate, files.X_OK)),
    )
    return found.some(({ status }) => status === 'fulfilled')
  }

  async function run(argv: readonly string[], options: ToolOptions = {}): Promise<Finished> {
    await needTools({ has }, ['bash', ...argv.slice(0, 1)])
    const { input, env: more, ...limits } = options
    const child = $({
      quiet: true,
      nothrow: true,
      verbose: false,
      env: withoutBash({ ...env, ...more }),
      ...(input === undefined ? { stdio: ['ignore', 'pipe', 'pipe'] } : { input }),
      ...limits,
    })`${argv}`
    // A tool that ends before it has read its input has said all that it had to say.
    child.child?.stdin?.on('error', () => {})
    const { exitCode, stdout, stderr } = await child
    return { exitCode: exitCode ?? 1, stdout, stderr }
  }

  return {
    run,
    has,
    async show(argv, options = {}) {
      const [tool = '', ...rest] = argv
      await needTools({ has }, [tool])
      options.signal?.throwIfAborted()
      // Not zx: with its shell in between, a program that asks to die with its parent would outlive us.
      const child = spawn(tool, rest, {
        // A process group of its own: it can be ended whole, and Ctrl-C reaches it through us alone.
        detached: true,
        stdio: ['ignore', 2, 2],
        env: { ...env, ...options.env },
      })
      return waitForGroup(child, options.signal, INTERRUPTION)
    },
    async require(argv, options) {
      const { exitCode, stdout, stderr } = await run(argv, options)
      if (exitCode === 0) return stdout
      const words = stderr.trim() || stdout.trim() || `exit code ${exitCode}`
      throw new Fault('tool-failed', `${argv[0]}: ${words}`)
    },
    pipe([tool = '', ...rest], held = []) {
      // Not zx: image data streams through these pipes.
      const child = spawn(tool, rest, { stdio: ['pipe', 'pipe', 'pipe', ...held], env })
      if (!hasPipes(child)) throw new Error(`${tool} was started without pipes`)
      return child
    },
  }
}

const hasPipes = (child: ChildProcess): child is ChildProcessWithoutNullStreams =>
  child.stdin !== null && child.stdout !== null && child.stderr !== null

/** Rejects with a Fault `tool-missing` for the first tool that is not installed. */
export async function needTools({ has }: Pick<Shell, 'has'>, tools: readonly string[]) {
  for (const tool of tools) if (!(await has(tool))) throw toolMissing(tool)
}

export function toolMissing(tool: string): Fault {
  const name = debianPackageOf(tool)
  return new Fault('tool-missing', `${tool} is not installed`, {
    hint: name === null ? undefined : `On Debian: apt-get install ${name}`,
  })
}

interface Interruption {
  readonly by: NodeJS.Signals
  /** How long the interrupted program may clear up before it is killed. */
  readonly graceMs: number
  /** Whether what it left running in the background ends with it, even when nobody interrupted it. */
  readonly endsRest?: boolean
}

const INTERRUPTION: Interruption = { by: 'SIGINT', graceMs: 2000 }

/**
 * Resolves to the exit code of a program with a process group of its own (128 and more: ended by a
 * signal). An abort interrupts the group, and kills what is left of it after `graceMs`
 * milliseconds. Rejects with Node's error where the program cannot be started.
 */
export async function waitForGroup(
  child: ChildProcess,
  signal: AbortSignal | undefined,
  { by, graceMs, endsRest = false }: Interruption,
): Promise<number> {
  const signalAll = (name: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name)
    } catch {
      // Nothing of the group is left.
    }
  }
  let killing: NodeJS.Timeout | undefined
  const interrupt = () => {
    signalAll(by)
    killing = setTimeout(signalAll, graceMs, 'SIGKILL')
  }
  using _ = signal && addAbortListener(signal, interrupt)
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code, name) => {
        resolve(code ?? 128 + (name === null ? 0 : constants.signals[name]))
      })
    })
  } finally {
    clearTimeout(killing)
    if (endsRest || signal?.aborted === true) signalAll('SIGKILL')
  }
}
