/**
 * Runs a program that says again and again that it is alive, and always comes to an end with it: a test
 * that waits for ever, or a program that one left behind, would take the turns of all others.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'

/** Milliseconds in which what was ended has to be gone, and what was printed last has to be read; at most. */
const MAX_END = 10_000
/** Characters that are kept of what was said. */
const MAX_SAID = 1000

interface WatchedRun {
  readonly command: readonly string[]
  /** What it is given besides our own environment. */
  readonly environment: Readonly<Record<string, string>>
  /** How nice it is to others: 0 for what has to keep up with a clock. */
  readonly niceness: number
  /** Milliseconds without a word after which it is ended, with all that it started. */
  readonly silence: number
  /** What it prints last, before it ends by itself. */
  readonly lastWords: RegExp
  /** Given what the program prints. */
  readonly read: (text: string) => void
  /** Given what there is to say of it. */
  readonly say: (text: string) => void
  /** Given each whole line at once. */
  readonly hear: (line: string) => void
  /** Somebody wants an end: the program has it at once. */
  readonly signal: AbortSignal
}

/**
 * Returns its exit code; 1 where it was ended, and 0 where it was ended after its last words: what they
 * say counts then.
 */
export async function runWatched(run: WatchedRun): Promise<number> {
  const { command, environment, silence, lastWords, read, say, signal } = run
  if (signal.aborted) return 1
  const endMs = Math.min(MAX_END, silence / 6)
  const [file = '', ...argv] = command
  const env = { ...process.env, ...environment }
  const child = spawn(file, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  if (child.pid !== undefined) os.setPriority(child.pid, run.niceness)
  const { promise: killed, resolve: endKilled } = Promise.withResolvers<null>()
  const timers: NodeJS.Timeout[] = []
  let said = ''
  let line = ''
  let [isOver, isEnded] = [false, false]

  function kill(why: string) {
    if (isEnded) return
    isEnded = true
    say(`\nEnded: ${why}. What ran then:\n`)
    for (const member of listFamily(child.pid)) end(member, say)
    // One that waits for a broken disk outlives even its own end.
    timers.push(setTimeout(endKilled, endMs, null))
  }
  const silent = setTimeout(kill, silence, `${silence / 1000} s passed without a word`)
  timers.push(silent)
  const onAbort = () => kill('somebody wanted an end')
  signal.addEventListener('abort', onAbort, { once: true })

  function hear(text: string) {
    silent.refresh()
    said = (said + text).slice(-MAX_SAID)
    read(text)
    const lines = (line + text).split('\n')
    line = lines.pop() ?? ''
    for (const whole of lines) run.hear(whole)
    if (isOver || !lastWords.test(said)) return
    isOver = true
    // A child of a test, or a port that is still open, has it wait for ever.
    timers.push(setTimeout(kill, endMs, 'its tests were over, and it was not'))
  }
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', hear)
  const code = await Promise.race([killed, waitForEnd(child, say, endMs)])
  for (const timer of timers) clearTimeout(timer)
  signal.removeEventListener('abort', onAbort)
  child.stdout.destroy()
  child.stderr.destroy()
  child.unref()
  if (isEnded) return isOver ? 0 : 1
  return code ?? 1
}

/** Whoever was left behind with its output in hand would keep it open for ever. */
function waitForEnd(child: ChildProcess, say: (text: string) => void, endMs: number) {
  const outputs = findOutputs(child.pid)
  const { promise, resolve } = Promise.withResolvers<number | null>()
  child.on('exit', (code) => {
    const late = setTimeout(() => {
      say('\nPrograms that outlived their tests:\n')
      for (const program of listHolders(outputs)) end(program, say)
      resolve(code)
    }, endMs)
    child.on('close', () => {
      clearTimeout(late)
      resolve(code)
    })
  })
  return promise
}

interface Program {
  readonly pid: number
  readonly parent: number
  readonly state: string
  readonly command: string
}

/** A program with all that it started and that still has a parent among them, itself first. */
function listFamily(pid: number | undefined): Program[] {
  const all = listPrograms()
  const family = all.filter((program) => program.pid === pid)
  for (const member of family) family.push(...all.filter(({ parent }) => parent === member.pid))
  return family
}

/** The programs that have one of these open. */
const listHolders = (targets: readonly string[]): Program[] =>
  listPrograms().filter(({ pid }) => listOpen(pid).some((target) => targets.includes(target)))

/** What a program prints to, as the kernel names it. */
const findOutputs = (pid: number | undefined): string[] =>
  ['1', '2'].flatMap((number) => readOpen(pid, number))

/** None of one that has ended meanwhile. */
function listOpen(pid: number): string[] {
  try {
    return fs.readdirSync(`/proc/${pid}/fd`).flatMap((number) => readOpen(pid, number))
  } catch {
    return []
  }
}

function readOpen(pid: number | undefined, number: string): string[] {
  try {
    return [fs.readlinkSync(`/proc/${pid}/fd/${number}`)]
  } catch {
    return []
  }
}

const listPrograms = (): Program[] =>
  fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProgram(Number(name)))

/** None where it has ended meanwhile. */
function readProgram(pid: number): Program[] {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name before it, in brackets, may hold anything.
    const [state = '?', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const command = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
    return [{ pid, parent: Number(parent), state, command: command.trim() }]
  } catch {
    return []
  }
}

const MAX_COMMAND = 300

function end({ pid, parent, state, command }: Program, say: (text: string) => void) {
  say(`  ${pid} of ${parent}, ${state}: ${command.slice(0, MAX_COMMAND)}\n`)
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself, which is as good.
  }
}
