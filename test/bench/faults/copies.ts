/** Copies of a tree in which faults are made, and test files that run there, with all that they leave taken away. */
import { execFile, execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify, stripVTControlCharacters } from 'node:util'

const execute = promisify(execFile)
const REASONS = './test/support/runner/reasons.ts'
/** Tries, a tenth of a second each, for what is asked to end, before it is killed. */
const MAX_END = 30
const NAMESPACES = '/run/netns'

export interface TestRun {
  readonly outcome: 'passed' | 'failed' | 'too long' | 'ended'
  readonly seconds: number
  /** The first failure that was printed, in one line. */
  readonly reason: string
}

interface TestOrder {
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
  fs.mkdirSync(path.join(at, 'node_modules'))
  // A link in its place would not be ignored by git.
  for (const entry of fs.existsSync(packages) ? fs.readdirSync(packages) : []) {
    fs.symlinkSync(path.join(packages, entry), path.join(at, 'node_modules', entry))
  }
  const flags = fs.existsSync(path.join(at, REASONS)) ? ['--import', REASONS] : []

  return {
    at,
    read: (file: string) => fs.readFileSync(path.join(at, file), 'utf8'),
    write: (file: string, content: string) => fs.writeFileSync(path.join(at, file), content),
    /** Runs one test file in a process of its own, at most so many seconds. */
    async run({ test, seconds, signal }: TestOrder): Promise<TestRun> {
      runs += 1
      // All that the test starts names it, in the environment or in the command.
      const scratch = path.join(folder, `${runs}t`)
      fs.mkdirSync(scratch)
      // Servers run as other users.
      fs.chmodSync(scratch, 0o1777)
      const ending = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(seconds * 1000))])
      const began = performance.now()
      const [file = '', ...argv] = [...WITHIN, process.execPath, ...flags, test]
      const child = spawn(file, argv, {
        cwd: at,
        env: {
          ...process.env,
          PATH: `${path.join(at, 'node_modules/.bin')}:${process.env['PATH']}`,
          TMPDIR: scratch,
          NODE_COMPILE_CACHE: path.join(folder, 'compiled'),
        },
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        killSignal: 'SIGKILL',
        signal: ending,
      })
      const printed = Promise.all([child.stdout, child.stderr].map((stream) => text(stream)))
      const { promise, resolve } = Promise.withResolvers<number | null>()
      child.on('error', () => child.pid ?? resolve(1)).on('exit', (code) => resolve(code))
      const code = await promise
      const took = (performance.now() - began) / 1000
      await clean(scratch, `${at}/`, child.pid ?? 0)
      const failed = code === null && ending.aborted ? 'too long' : 'failed'
      const outcome = signal.aborted ? 'ended' : code === 0 ? 'passed' : failed
      return { outcome, seconds: took, reason: findReason((await printed).join('\n')) }
    },
    [Symbol.dispose]: () => void git('worktree', 'remove', '--force', at),
  }
}

/** Mounts of root's tests go with them. */
const WITHIN = process.getuid?.() === 0 ? ['unshare', '--mount'] : []

/** Ends the programs of a run, gives back its loop devices and network namespaces, and removes its files. */
async function clean(scratch: string, copy: string, pid: number) {
  for (let tries = 0; tries < 2 * MAX_END; tries += 1) {
    const left = listUsers([scratch, copy])
    if (left.length === 0) break
    for (const each of left) {
      attempt(() => process.kill(each, tries < MAX_END ? 'SIGTERM' : 'SIGKILL'))
    }
    await sleep(100)
  }
  for (const name of fs.readdirSync('/sys/block')) {
    if (!tryRead(`/sys/block/${name}/loop/backing_file`).startsWith(`${scratch}/`)) continue
    await execute('partx', ['-d', `/dev/${name}`]).catch(() => {})
    await execute('losetup', ['--detach', `/dev/${name}`]).catch(() => {})
  }
  const namespaces = fs.existsSync(NAMESPACES) ? fs.readdirSync(NAMESPACES) : []
  for (const name of namespaces.filter((each) => each.includes(`-${pid}-`))) {
    await execute('ip', ['netns', 'del', name]).catch(() => {})
  }
  fs.rmSync(scratch, { recursive: true, force: true, maxRetries: 3 })
}

/** The programs that name one of the folders in their environment or command; some start with no other. */
const listUsers = (folders: readonly string[]): readonly number[] =>
  fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const said = tryRead(`/proc/${pid}/environ`) + tryRead(`/proc/${pid}/cmdline`)
      return folders.some((folder) => said.includes(folder))
    })
    .map(Number)

const tryRead = (file: string): string => attempt(() => fs.readFileSync(file, 'utf8')) ?? ''

/** Null where the program has ended by itself, or the device is none. */
function attempt<Value>(action: () => Value): Value | null {
  try {
    return action()
  } catch {
    return null
  }
}

function findReason(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split('\n')
    .map((line) => line.trim())
  return lines.find((line) => line.startsWith('FAIL ')) ?? lines.findLast(Boolean) ?? ''
}
