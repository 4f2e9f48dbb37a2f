/** Copies of a tree in which faults are made, and test files that run there, with all that they leave taken away. */
import { execFile, execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify, stripVTControlCharacters } from 'node:util'

const execute = promisify(execFile)
const REASONS = './test/support/runner/reasons.ts'
/** What a test file starts has this in its environment, with the number of the run. */
const MARK = 'FLASHER_FAULTS_RUN'
/** Milliseconds for what is asked to end, before it is killed. */
const MAX_END = 3000
const MAX_OUTPUT = 2 ** 20

export interface TestRun {
  readonly outcome: 'passed' | 'failed' | 'too long' | 'ended'
  readonly seconds: number
  /** The first failure that was printed, in one line. */
  readonly reason: string
}

export interface TestOrder {
  readonly test: string
  readonly seconds: number
  readonly signal: AbortSignal
}

export type Copy = ReturnType<typeof makeCopy>
let runs = 0

/** A work tree of the tree's commit below `folder`, without its packages: those are linked. */
export function makeCopy(tree: string, folder: string, name: string) {
  const at = path.join(folder, name)
  const scratch = path.join(folder, `${name}t`)
  const git = (...argv: string[]) => execFileSync('git', ['-C', tree, ...argv], { stdio: 'pipe' })
  git('worktree', 'add', '--detach', '--quiet', at, 'HEAD')
  const packages = path.join(tree, 'node_modules')
  mkdirSync(path.join(at, 'node_modules'))
  // A link in its place would not be ignored by git.
  for (const entry of existsSync(packages) ? readdirSync(packages) : []) {
    symlinkSync(path.join(packages, entry), path.join(at, 'node_modules', entry))
  }
  const flags = existsSync(path.join(at, REASONS)) ? ['--import', REASONS] : []

  return {
    at,
    read: (file: string) => readFileSync(path.join(at, file), 'utf8'),
    write: (file: string, text: string) => writeFileSync(path.join(at, file), text),
    /** Runs one test file in a process of its own, at most so many seconds. */
    async run({ test, seconds, signal }: TestOrder): Promise<TestRun> {
      runs += 1
      const mark = `${MARK}=${process.pid}-${runs}`
      mkdirSync(scratch)
      // Servers run as other users.
      chmodSync(scratch, 0o1777)
      const ending = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(seconds * 1000))])
      const began = performance.now()
      const argv = [...within(), process.execPath, ...flags, test]
      const { code, output } = await start(argv, ending, {
        cwd: at,
        env: {
          ...process.env,
          PATH: `${path.join(at, 'node_modules/.bin')}:${process.env['PATH']}`,
          TMPDIR: scratch,
          NODE_COMPILE_CACHE: path.join(folder, 'compiled'),
          [MARK]: mark.slice(MARK.length + 1),
        },
      })
      const took = (performance.now() - began) / 1000
      await clean(mark, scratch)
      const isTooLong = code === null && ending.aborted
      const failed = isTooLong ? 'too long' : 'failed'
      const outcome = signal.aborted ? 'ended' : code === 0 ? 'passed' : failed
      return { outcome, seconds: took, reason: findReason(output) }
    },
    [Symbol.dispose]() {
      git('worktree', 'remove', '--force', at)
    },
  }
}

/** Mounts of root's tests go with them. */
const within = () => (process.getuid?.() === 0 ? ['unshare', '--mount'] : [])

async function start(
  [file = '', ...argv]: readonly string[],
  ending: AbortSignal,
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
) {
  const child = spawn(file, argv, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(0, MAX_OUTPUT)
    })
  }
  const { promise, resolve } = Promise.withResolvers<number | null>()
  child.on('error', () => resolve(1))
  child.on('exit', (code) => resolve(code))
  const kill = () => child.kill('SIGKILL')
  ending.addEventListener('abort', kill, { once: true })
  if (ending.aborted) kill()
  const code = await promise
  ending.removeEventListener('abort', kill)
  // Whoever is left behind with its output in hand would keep it open.
  child.stdout.destroy()
  child.stderr.destroy()
  return { code, output }
}

/** Ends the programs of a run, detaches its loop devices and removes its files. */
async function clean(mark: string, scratch: string) {
  const until = performance.now() + MAX_END
  let signal: NodeJS.Signals = 'SIGTERM'
  for (let left = listMarked(mark); left.length > 0; left = listMarked(mark)) {
    for (const pid of left) end(pid, signal)
    await sleep(100)
    if (performance.now() > until) signal = 'SIGKILL'
    if (performance.now() > until + MAX_END) break
  }
  for (const backing of globSync('/sys/block/loop*/loop/backing_file')) {
    const device = `/dev/${backing.split('/')[3]}`
    if (!tryRead(backing).startsWith(`${scratch}/`)) continue
    await execute('partx', ['-d', device]).catch(() => {})
    await execute('losetup', ['--detach', device]).catch(() => {})
  }
  rmSync(scratch, { recursive: true, force: true })
}

/** The programs that were started with this in their environment. */
const listMarked = (mark: string): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => tryRead(`/proc/${pid}/environ`).split('\0').includes(mark))
    .map(Number)

function tryRead(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function end(pid: number, signal: NodeJS.Signals) {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended by itself.
  }
}

function findReason(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split('\n')
    .map((line) => line.trim())
  return lines.find((line) => line.startsWith('FAIL ')) ?? lines.findLast(Boolean) ?? ''
}
