/**
 * Runs test files, each in a process of its own, as many beside each other as waiting allows, the longest first.
 * Its arguments are `[--folder test] [--record] [--changed [COMMIT]] NAME|PATTERN …`: a name is one of the
 * selections, a pattern is looked for in the files' paths.
 *
 * A failure is printed when it happens, a file when it is over. A file that failed is run once more, alone: what
 * passes then is named as FLAKY, for a test that passes only sometimes is to be mended, but it does not fail the
 * run. A file that is silent is ended. The slowest files are named before the count.
 */
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs, stripVTControlCharacters } from 'node:util'
import { listArrows, readTexts } from '../arrows.ts'
import { describeSlowest, type FileDuration, readDurations, writeDurations } from './durations.ts'
import { type Job, planJobs, takeJob } from './queue.ts'
import { SELECTIONS } from './selections.ts'
import { openSlot, type Slot } from './slots.ts'
import { runWatched } from './watched.ts'

interface RunResults {
  /** Whether the run came to its end, so that each file had its turn. */
  readonly isWhole: boolean
  /** How many tests there were in the files that had their turn; a file that broke off counts as one. */
  readonly tests: number
  /** The processor's seconds; null where the run did not come to its end. */
  readonly processorSeconds: number | null
  /** The files that had their turn, in order. */
  readonly files: readonly string[]
  readonly failures: readonly FileFailure[]
}

interface FileFailure {
  /** The file, from the folder of the tests. */
  readonly file: string
  readonly text: string
  readonly failed: number
}

/** What is printed first of a test that fails, in the moment it does. */
const FAILURE = /^ {3}FAIL: /

const FILE = /^\S+\.test\.ts$/
const COUNT = /\((\d+) \/ (\d+)\)$/
const TOTAL = /^ {2}Total: +\d+$/
const PROCESSOR = /^Processor: ([\d.]+) s$/

/** What one run printed, colours or not. */
function readResults(output: string): RunResults {
  const lines = stripVTControlCharacters(output).split('\n')
  const end = lines.findIndex((line) => TOTAL.test(line))
  const isWhole = end !== -1
  const files = splitFiles(isWhole ? lines.slice(0, end) : lines)
  const processor = lines.flatMap((line) => PROCESSOR.exec(line)?.[1] ?? [])[0]
  const last = isWhole ? undefined : files.pop()
  const failures = files.map(judge).filter(({ failed }) => failed > 0)
  if (last !== undefined) {
    failures.push({ file: last.file, text: last.lines.join('\n').trim(), failed: 1 })
  }
  return {
    isWhole,
    tests: files.reduce((sum, file) => sum + countTests(file), last === undefined ? 0 : 1),
    processorSeconds: isWhole && processor !== undefined ? Number(processor) : null,
    files: [...files, ...(last === undefined ? [] : [last])].map(({ file }) => file),
    failures,
  }
}

interface PrintedFile {
  readonly file: string
  readonly lines: string[]
}

function splitFiles(lines: readonly string[]): PrintedFile[] {
  const files: PrintedFile[] = []
  for (const line of lines) {
    if (FILE.test(line)) files.push({ file: line, lines: [] })
    else files.at(-1)?.lines.push(line)
  }
  return files
}

const countTests = ({ lines }: PrintedFile): number =>
  lines.reduce((sum, line) => sum + Number(COUNT.exec(line)?.[2] ?? 0), 0)

function judge({ file, lines }: PrintedFile): FileFailure {
  const failed = lines.reduce((sum, line) => {
    const [, ran = '0', of = '0'] = COUNT.exec(line) ?? []
    return sum + Number(of) - Number(ran)
  }, 0)
  const start = lines.findIndex((line) => FAILURE.test(line))
  return { file, failed, text: lines.slice(Math.max(0, start)).join('\n').trim() }
}

const SOURCES = ['appliance/**/*.ts', 'build/**/*.ts', 'runtime/**/*.{ts,mjs}', 'test/**/*.ts']

interface Choice {
  readonly folder: string
  /** A commit: what differs from it, or is not committed, has changed. */
  readonly since: string
}

function listChanged(tests: readonly string[], { folder, since }: Choice): string[] {
  const changed = new Set([
    ...git(['diff', '--name-only', '--relative', since]),
    ...git(['ls-files', '--others', '--exclude-standard']),
  ])
  const texts = readTexts(SOURCES)
  const loaders = new Map<string, string[]>()
  for (const { from, to, local } of listArrows(texts)) {
    if (local) loaders.set(to, [...(loaders.get(to) ?? []), from])
  }
  // A program that is started is named, not imported.
  for (const program of [...texts.keys()].filter((file) =>
    /^(runtime\/bin|build)\/[^/]+$/.test(file),
  )) {
    const name = path.basename(program)
    const starters = [...texts].filter(
      ([file, text]) => file.startsWith(folder) && text.includes(name),
    )
    loaders.set(program, [...(loaders.get(program) ?? []), ...starters.map(([file]) => file)])
  }
  const reached = new Set(changed)
  // A set that grows while it is walked is walked to its end.
  for (const file of reached) for (const loader of loaders.get(file) ?? []) reached.add(loader)
  return tests.filter((test) => reached.has(path.join(folder, test)))
}

function git(argv: readonly string[]): string[] {
  const { status, stdout, stderr } = spawnSync('git', argv, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`git ${argv.join(' ')} ended with ${status}: ${stderr}`)
  return stdout.split('\n').filter(Boolean)
}

/** More failures than this are not chance: they are not run again. */
const MAX_RETRIED_FILES = 10
const MAX_SLOW_FILES = 10
/** A file that took fewer seconds needs no line of its own. */
const QUIET_SECONDS = 10
const MINUTE = 60_000
/** The longest test of this host takes three minutes, with more kills more; boots are emulated in an hour at most. */
const MORE_KILLS = Math.max(1, (Number(process.env['FLASHER_TEST_KILLS']) || 0) / 12)
const MAX_SILENCE = Number(process.env['FLASHER_TEST_SILENCE']) || 8 * MINUTE * MORE_KILLS
const MAX_BOOT_SILENCE = 90 * MINUTE

const cores = os.availableParallelism()
/** Half of what most files do is waiting. */
const slots = {
  all: Number(process.env['FLASHER_TEST_WORKERS']) || 3 * cores,
  boots: Math.max(1, Math.floor(cores / 2)),
}

/** A program that copies all mounts would keep the disks of other tests in use. */
const OWN_MOUNTS = ['unshare', '--mount', '--']
const within = spawnSync('unshare', ['--mount', 'true']).status === 0 ? OWN_MOUNTS : []

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    folder: { type: 'string', default: 'test' },
    record: { type: 'boolean', default: false },
    changed: { type: 'boolean', default: false },
  },
})
const { folder } = options
const began = performance.now()

/** A limit of time that runs out still learns what took so long. */
const ending = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => ending.abort())

interface Outcome {
  readonly job: Job
  readonly seconds: number
  readonly results: RunResults
}

const all = fs.globSync('**/*.test.ts', { cwd: folder }).toSorted()
const files = chooseFiles()
const durations = readDurations()
const pure = new RegExp(SELECTIONS['pure'] ?? '')
const outcomes = await runQueue(planJobs(files, { durations, isPure: (file) => pure.test(file) }))
report(outcomes, await listLasting(outcomes))

function chooseFiles(): string[] {
  if (options.changed) return listChanged(all, { folder, since: positionals[0] ?? 'HEAD' })
  const patterns = positionals.map((word) => new RegExp(SELECTIONS[word] ?? word, 'i'))
  return all.filter((file) => patterns.some((pattern) => pattern.test(file)))
}

async function runQueue(waiting: Job[]): Promise<readonly Outcome[]> {
  const ended: Outcome[] = []
  const running = new Map<Job, Promise<void>>()
  const free: Slot[] = []
  while (!ending.signal.aborted && (waiting.length > 0 || running.size > 0)) {
    const job = takeJob(waiting, [...running.keys()], slots)
    if (job === null) {
      await Promise.race(running.values())
      continue
    }
    const slot = free.pop() ?? (await openSlot())
    running.set(
      job,
      runJob(job, slot).then((outcome) => {
        ended.push(outcome)
        running.delete(job)
        free.push(slot)
      }),
    )
  }
  await Promise.all(running.values())
  await Promise.all(free.map((slot) => slot.close()))
  return ended
}

/** Files whose process was ended by one of them still have their turn. */
async function runJob(job: Job, slot: Slot): Promise<Outcome> {
  const outcome = await runFiles(job, slot)
  print(outcome)
  const left = job.files.filter((file) => !outcome.results.files.includes(file))
  if (outcome.results.isWhole || left.length === 0 || ending.signal.aborted) return outcome
  const { results, seconds } = await runJob({ ...job, files: left }, slot)
  return {
    job,
    seconds: outcome.seconds + seconds,
    results: {
      ...results,
      tests: outcome.results.tests + results.tests,
      files: [...outcome.results.files, ...results.files],
      failures: [...outcome.results.failures, ...results.failures],
    },
  }
}

async function runFiles(job: Job, slot: Slot): Promise<Outcome> {
  const started = performance.now()
  let printed = ''
  const program = path.join(import.meta.dirname, 'files.ts')
  const explained = ['--import', import.meta.resolve('./reasons.ts')]
  // Node itself holds them to it: no file is written, no process started, no connection opened.
  const held = job.isPure ? ['--permission', '--allow-fs-read=*', '--no-warnings'] : []
  const code = await runWatched({
    command: [...within, process.execPath, ...held, ...explained, program, folder, ...job.files],
    // Else bash would run its user's `.bashrc` for each command that gets its input through a socket.
    environment: { ...slot.environment, SHLVL: '2', PATH: withOurNode(process.env['PATH'] ?? '') },
    // A guest has only so long to boot, whatever runs beside it.
    niceness: job.isBoot ? 0 : 10,
    silence: job.isBoot ? MAX_BOOT_SILENCE : MAX_SILENCE,
    lastWords: /\n {2}Duration: [^\n]*\s*$/,
    read: (text) => {
      printed += text
    },
    say: (text) => {
      printed += text
      write(text)
    },
    hear: (line) => {
      if (FAILURE.test(line)) write(`${nameOf(job)}: ${line.trim()}\n`)
    },
    signal: ending.signal,
  })
  const left = await slot.check()
  const seconds = (performance.now() - started) / 1000
  const results = explain(readResults(printed), { job, code, left, printed })
  return { job, seconds, results }
}

/** Programs that a test installs are started by the Node that the tests run in. */
function withOurNode(folders: string): string {
  return [path.dirname(process.execPath), folders].join(path.delimiter)
}

/** A run that fails without a failing test says at least how it ended. */
function explain(
  results: RunResults,
  run: {
    readonly job: Job
    readonly code: number
    readonly left: string
    readonly printed: string
  },
): RunResults {
  const { job, code, left, printed } = run
  const [file = ''] = job.files
  const add = (text: string, tests: number) => ({
    ...results,
    tests: results.tests + tests,
    files: job.files,
    failures: [...results.failures, { file, text, failed: 1 }],
  })
  if (left !== '') return add(left, 0)
  if (results.failures.length > 0) return results
  if (results.files.length === 0) return add(`It ended with code ${code}\n${printed.trim()}`, 1)
  if (code !== 0) return add(`It ended with code ${code}`, 0)
  return results.tests === 0 ? add('It has no test', 1) : results
}

function print({ job, seconds, results }: Outcome) {
  const minutes = Math.floor((performance.now() - began) / MINUTE)
  const isBad = results.failures.length > 0
  if (seconds < QUIET_SECONDS && !isBad) return
  const cpu =
    results.processorSeconds === null ? '' : `, ${results.processorSeconds.toFixed(0)} s CPU`
  const mark = isBad ? 'failed' : 'passed'
  write(`minute ${minutes}: ${nameOf(job)} ${mark}, ${seconds.toFixed(0)} s${cpu}\n`)
}

function nameOf({ files: [first = '', ...others] }: Job): string {
  return others.length === 0 ? first : `${first} and ${others.length} more`
}

async function listLasting(ended: readonly Outcome[]): Promise<FileFailure[]> {
  const failures = ended.flatMap(({ results }) => results.failures)
  const names = new Set(failures.map(({ file }) => file))
  if (names.size > MAX_RETRIED_FILES) return failures
  const lasting: FileFailure[] = []
  for (const failure of failures) {
    if (ending.signal.aborted) {
      lasting.push(failure)
      continue
    }
    write(`\nRunning ${failure.file} once more, alone\n`)
    const slot = await openSlot()
    const isBoot = failure.file.startsWith('vm/')
    const { results } = await runFiles(
      { files: [failure.file], seconds: 0, isBoot, isPure: false },
      slot,
    )
    await slot.close()
    if (results.failures.length > 0) lasting.push(failure)
    else write(`\nFLAKY ${failure.file}: it passed when run alone\n${failure.text}\n`)
  }
  return lasting
}

function report(ended: readonly Outcome[], lasting: readonly FileFailure[]) {
  const isCut = ending.signal.aborted
  const total = ended.reduce((sum, { results }) => sum + results.tests, 0)
  const isMissing = total === 0 || isCut
  const failed = lasting.reduce((sum, failure) => sum + failure.failed, isMissing ? 1 : 0)
  reportTimes(ended)
  for (const { file, text } of lasting) write(`\nFAILED ${file}\n${text}\n`)
  if (isCut) write('\nThe run was ended before its end\n')
  else if (total === 0) write('\nNo test matches\n')
  write(`\n${Math.max(0, total - failed)} passed, ${failed} failed\n`)
  if (failed > 0) process.exitCode = 1
  if (options.folder === 'test') keepDurations(ended)
}

function reportTimes(ended: readonly Outcome[]) {
  const times = ended.map((outcome): FileDuration => ({
    file: nameOf(outcome.job),
    seconds: outcome.seconds,
    processorSeconds: outcome.results.processorSeconds,
  }))
  const slowest = describeSlowest(times, MAX_SLOW_FILES)
  if (slowest.length > 0) write(`\nThe slowest files:\n${slowest.join('\n')}\n`)
  const wall = (performance.now() - began) / 1000
  const cpu = times.reduce((sum, { processorSeconds }) => sum + (processorSeconds ?? 0), 0)
  const used = `${cpu.toFixed(0)} s CPU, ${((100 * cpu) / wall / cores).toFixed(0)} % of ${cores} cores`
  write(`\n${ended.length} processes in ${(wall / 60).toFixed(1)} minutes: ${used}\n`)
}

function keepDurations(ended: readonly Outcome[]) {
  const alone = ended.filter(({ job, results }) => job.files.length === 1 && results.isWhole)
  const found = alone.map(({ job, seconds }): [string, number] => [job.files[0] ?? '', seconds])
  writeDurations(new Map(found), { files: all, isRecord: options.record })
}

function write(text: string) {
  process.stdout.write(text)
}
