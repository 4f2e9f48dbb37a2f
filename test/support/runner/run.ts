/**
 * Runs the tests whose path matches each of the patterns, or that a name of a selection stands for, one after another even where one
 * fails, and ends with what failed. Patterns after a `+` run beside those before it: boots keep one
 * processor busy, and most other tests not even that. A file that failed is run once more, alone: what
 * passes then is named, for a test that passes only sometimes is to be mended, but does not fail the run.
 * A run that is silent is ended, and goes on behind the file that waited. The slowest files are named
 * before the count.
 */
import path from 'node:path'
import { createStopwatch, describeSlowest, type FileDuration } from './durations.ts'
import { createPrinter, type Printer } from './printer.ts'
import { readResults, type FileFailure } from './results.ts'
import { SELECTIONS } from './selections.ts'
import { runWatched } from './watched.ts'

/** More failures than this are not chance: they are not run again. */
const MAX_RETRIED_FILES = 4
const MAX_SLOW_FILES = 25
/** A file that ends the run of all is one too many; more than these are no accident. */
const MAX_BREAKS = 3
/** The longest test of this host takes three minutes, with more kills more; boots are emulated in an hour at most. */
const MINUTE = 60_000
const MORE_KILLS = Math.max(1, (Number(process.env['FLASHER_TEST_KILLS']) || 0) / 12)
const MAX_SILENCE = Number(process.env['FLASHER_TEST_SILENCE']) || 8 * MINUTE * MORE_KILLS
const MAX_BOOT_SILENCE = 90 * MINUTE

const [folder = 'test', ...given] = process.argv.slice(2)
const words = given.map((word) => SELECTIONS[word] ?? word)
const split = words.indexOf('+')
const lanes = split === -1 ? [words] : [words.slice(0, split), words.slice(split + 1)]

interface Outcome {
  readonly total: number
  readonly failures: readonly FileFailure[]
  readonly durations: readonly FileDuration[]
  /** Whether files ended the run again and again, so that others had no turn. */
  readonly isBrokenOff: boolean
}

const DURATION = /\n {2}Duration: [^\n]*\s*$/

/** A limit of time that runs out still learns what took so long. */
const ending = new AbortController()
process.on('SIGTERM', () => ending.abort())

const outcomes = (await Promise.all(lanes.map(runLane))).flat()
report(outcomes, await listLasting(outcomes))

async function runLane(patterns: readonly string[]): Promise<readonly Outcome[]> {
  const printer = createPrinter(write, { isAlone: lanes.length === 1 })
  const ended: Outcome[] = []
  for (const pattern of patterns) {
    if (!ending.signal.aborted) ended.push(await runPattern(pattern, printer))
  }
  return ended
}

/** Where a file ends the run of all, those after it still have their turn. */
async function runPattern(pattern: string, printer: Printer): Promise<Outcome> {
  const silence = silenceOf(pattern.replace('^', ''))
  const runs = [await runUvu(pattern, printer, silence)]
  const isBroken = () => runs.at(-1)?.results.total === null && !ending.signal.aborted
  while (runs.length <= MAX_BREAKS && isBroken()) {
    const ran = runs.flatMap(({ durations }) => durations.map(({ file }) => file))
    // It ended while the files were loaded: without a name there is none to leave out.
    if (runs.at(-1)?.durations.length === 0) break
    write(`\nThe run ended in ${ran.at(-1)}; what comes after it is run now\n`)
    runs.push(await runUvu(exceptFor(pattern, ran), printer, silence))
  }
  return joinRuns(pattern, runs)
}

function joinRuns(pattern: string, runs: readonly Awaited<ReturnType<typeof runUvu>>[]): Outcome {
  const failures = runs.flatMap(({ results }) => results.failures)
  const total = runs.reduce((sum, { results }) => sum + results.seen, 0)
  const code = runs.at(-1)?.code
  const text = total === 0 ? 'no test matches' : `uvu ended with code ${code}`
  // Where a file ended the one before, nothing may have been left for the last run.
  const isUnexplained = failures.length === 0 && (code !== 0 || total === 0)
  return {
    total,
    failures: isUnexplained ? [{ file: pattern, text, failed: 1 }] : failures,
    durations: runs.flatMap(({ durations }) => durations),
    isBrokenOff: runs.at(-1)?.results.total === null,
  }
}

/** What the pattern matches but for these files; uvu looks for it in their paths. */
function exceptFor(pattern: string, files: readonly string[]): string {
  const others = files.map((file) => RegExp.escape(file)).join('|')
  return `^(?!(${others})$)(?=.*(${pattern}))`
}

async function listLasting(ended: readonly Outcome[]): Promise<FileFailure[]> {
  const failures = ended.flatMap((outcome) => outcome.failures)
  const isOver = ending.signal.aborted || ended.some((run) => run.isBrokenOff)
  const isChance = failures.length <= MAX_RETRIED_FILES && !isOver
  if (!isChance) return failures
  const lasting: FileFailure[] = []
  for (const failure of failures) {
    if (ending.signal.aborted) {
      lasting.push(failure)
      continue
    }
    write(`\nRunning ${failure.file} once more, alone\n`)
    const printer = createPrinter(write, { isAlone: true })
    const pattern = `^${RegExp.escape(failure.file)}$`
    const { code, results } = await runUvu(pattern, printer, silenceOf(failure.file))
    const hasPassed = code === 0 && results.total !== 0 && results.failures.length === 0
    if (!hasPassed) lasting.push(failure)
    else write(`\nFLAKY ${failure.file}: it passed when run alone\n${failure.text}\n`)
  }
  return lasting
}

function report(ended: readonly Outcome[], lasting: readonly FileFailure[]) {
  const total = ended.reduce((sum, outcome) => sum + outcome.total, 0)
  const isCut = ending.signal.aborted
  const failed = lasting.reduce((sum, failure) => sum + failure.failed, isCut ? 1 : 0)
  const durations = ended.flatMap((outcome) => outcome.durations)
  const slowest = describeSlowest(durations, MAX_SLOW_FILES)
  if (slowest.length > 0) write(`\nThe slowest files:\n${slowest.join('\n')}\n`)
  for (const { file, text } of lasting) write(`\nFAILED ${file}\n${text}\n`)
  if (isCut) write('\nThe run was ended before its end\n')
  write(`\n${Math.max(0, total - failed)} passed, ${failed} failed\n`)
  if (isCut || lasting.length > 0) process.exitCode = 1
}

function silenceOf(tests: string): number {
  return tests.startsWith('vm/') ? MAX_BOOT_SILENCE : MAX_SILENCE
}

async function runUvu(pattern: string, printer: Printer, silence: number) {
  const program = path.resolve('node_modules/uvu/bin.js')
  const argv = ['--import', import.meta.resolve('./reasons.ts'), program, folder, pattern]
  const stopwatch = createStopwatch()
  let printed = ''
  function read(text: string) {
    printed += text
    stopwatch.read(text)
    printer.print(text)
  }
  const command = [process.execPath, ...argv]
  const code = await runWatched({
    command,
    silence,
    lastWords: DURATION,
    read,
    signal: ending.signal,
  })
  printer.end()
  return { code, results: readResults(printed), durations: stopwatch.end() }
}

function write(text: string) {
  process.stdout.write(text)
}
