/** Copies of a tree in which faults are made, and test files that run there, with all that they leave taken away. */
import { execFile, execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
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
/** Milliseconds for what is asked to end, before it is killed. */
const MAX_END = 3000
const NAMESPACES = '/run/netns'
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
      // All that the test starts names it, in the environment or in the command.
      const scratch = path.join(folder, `${runs}t`)
      mkdirSync(scratch)
      // Servers run as other users.
      chmodSync(scratch, 0o1777)
      const ending = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(seconds * 1000))])
      const began = performance.now()
      const argv = [...within(), process.execPath, ...flags, test]
      const { code, output, pid } = await start(argv, ending, {
        cwd: at,
        env: {
          ...process.env,
          PATH: `${path.join(at, 'node_modules/.bin')}:${process.env['PATH']}`,
          TMPDIR: scratch,
          NODE_COMPILE_CACHE: path.join(folder, 'compiled'),
        },
      })
      const took = (performance.now() - began) / 1000
      await clean(scratch, `${at}/`, pid)
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
  return { code, output, pid: child.pid ?? 0 }
}

/** Ends the programs of a run, gives back its loop devices and network namespaces, and removes its files. */
async function clean(scratch: string, copy: string, pid: number) {
  const until = performance.now() + MAX_END
  let signal: NodeJS.Signals = 'SIGTERM'
  for (let left = listUsers([scratch, copy]); left.length > 0; left = listUsers([scratch, copy])) {
    for (const each of left) end(each, signal)
    await sleep(100)
    if (performance.now() > until) signal = 'SIGKILL'
    if (performance.now() > until + MAX_END) break
  }
  for (const name of readdirSync('/sys/block')) {
    if (!tryRead(`/sys/block/${name}/loop/backing_file`).startsWith(`${scratch}/`)) continue
    await execute('partx', ['-d', `/dev/${name}`]).catch(() => {})
    await execute('losetup', ['--detach', `/dev/${name}`]).catch(() => {})
  }
  const namespaces = existsSync(NAMESPACES) ? readdirSync(NAMESPACES) : []
  for (const name of namespaces.filter((each) => each.includes(`-${pid}-`))) {
    await execute('ip', ['netns', 'del', name]).catch(() => {})
  }
  rmSync(scratch, { recursive: true, force: true, maxRetries: 3 })
}

/** The programs that name one of the folders in their environment or command; some start with no other. */
const listUsers = (folders: readonly string[]): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const text = tryRead(`/proc/${pid}/environ`) + tryRead(`/proc/${pid}/cmdline`)
      return folders.some((folder) => text.includes(folder))
    })
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
