/** `pnpm bench:faults`: faults drawn by a seed are made in copies of a tree, and the tests that load them have to find them. */
import { execFileSync } from 'node:child_process'
import { chmodSync, globSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { listArrows } from '#test/support/arrows.ts'
import { SELECTIONS } from '#test/support/runner/selections.ts'
import { type Copy, makeCopy, type TestRun } from './faults/copies.ts'
import { createDraw, type Fault } from './faults/draw.ts'
import { KINDS } from './faults/places.ts'
import { createWitnesses, type Witness } from './faults/witnesses.ts'

/** A test file hangs that takes so many times what it took before, or this part of the fault's limit. */
const [HANGING, MIN_SECONDS, PART_OF_LIMIT] = [4, 60, 3]
/** `types`: tsc finds it, and no test is asked. */
const OUTCOMES = ['found', 'not found', 'not finished', 'types'] as const

interface FaultResult {
  readonly outcome: (typeof OUTCOMES)[number]
  /** The test that found it, from the tree's folder, or null. */
  readonly test: string | null
  /** The first failure, or the message of tsc. */
  readonly reason: string
  /** How long tests ran for it until then. */
  readonly seconds: number
  /** How many test files ran, of how many that load the file. */
  readonly tried: number
  readonly tests: number
}

interface TrialDependencies {
  /** The copy without a fault. */
  readonly clean: Copy
  readonly listTests: (file: string) => readonly Witness[]
  /** The seconds for the tests of one fault. */
  readonly limit: number
  readonly signal: AbortSignal
}

function createTrial({ clean, listTests, limit, signal }: TrialDependencies) {
  const cleanRuns = new Map<string, Promise<TestRun>>()
  let last: Promise<unknown> = Promise.resolve()

  /** Once for each test file, one after another. */
  function runClean(test: string, seconds: number): Promise<TestRun> {
    const run = cleanRuns.get(test) ?? last.then(() => clean.run({ test, seconds, signal }))
    cleanRuns.set(test, run)
    last = run
    return run
  }

  const limitOf = ({ seconds }: Witness) =>
    Math.max(
      Math.min(MIN_SECONDS, limit),
      seconds === null ? limit / PART_OF_LIMIT : HANGING * seconds,
    )

  /** Whether the fault makes the difference: the test passes without it, and fails with it again. */
  async function isWitness(copy: Copy, witness: Witness, run: TestRun): Promise<boolean> {
    const seconds = limitOf(witness)
    const without = await runClean(witness.file, seconds)
    if (without.outcome !== 'passed') return false
    // On a loaded machine one that is near its limit proves nothing.
    if (run.outcome === 'too long') return without.seconds < seconds / 2
    const second = await copy.run({ test: witness.file, seconds, signal })
    return second.outcome === 'failed' || second.outcome === 'too long'
  }

  /** Null where somebody wanted an end. */
  return async function tryFault(fault: Fault, copy: Copy): Promise<FaultResult | null> {
    const text = copy.read(fault.file)
    const tests = listTests(fault.file)
    let [tried, seconds] = [0, 0]
    const end = (outcome: FaultResult['outcome'], test: string | null = null, reason = '') => ({
      outcome,
      test,
      reason,
      tried,
      tests: tests.length,
      seconds: Math.round(seconds * 10) / 10,
    })
    copy.write(fault.file, fault.text)
    try {
      for (const witness of tests) {
        const left = limit - seconds
        const most = Math.min(left, limitOf(witness))
        if (most <= 0) return end('not finished')
        const run = await copy.run({ test: witness.file, seconds: most, signal })
        if (run.outcome === 'ended') return null
        seconds += run.seconds
        if (run.outcome === 'too long' && most === left) return end('not finished')
        tried += 1
        if (run.outcome === 'passed') continue
        const isFound = await isWitness(copy, witness, run)
        if (signal.aborted) return null
        if (isFound) return end('found', witness.file, run.reason)
      }
      return end('not found')
    } finally {
      copy.write(fault.file, text)
    }
  }
}

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '120' },
    minutes: { type: 'string', default: '10' },
    workers: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
    tree: { type: 'string', default: path.join(import.meta.dirname, '../..') },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(`pnpm bench:faults [--seed 1] [--count 120] [--minutes 10] [--workers 2] [--only SELECTION,…]
                  [--tree CHECKOUT] [--json FILE]

Draws faults of seven kinds from runtime/ of the tree's commit. Those that tsc finds are listed apart; for each
other one, the test files that load its file run until one fails, nearest first, at most --minutes. A test is a
witness when it fails twice with the fault and passes without. --json keeps the results.`)
  process.exit(0)
}

/** What `--json` keeps. */
export type NumberedFault = Omit<Fault, 'text'> & {
  readonly number: number
  readonly result: FaultResult
}

const tree = realpathSync(values.tree)
const results: NumberedFault[] = []
const ending = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => ending.abort())

const folder = mkdtempSync(path.join(os.tmpdir(), 'faults-'))
chmodSync(folder, 0o755)
using cleanup = new DisposableStack()
cleanup.defer(() => rmSync(folder, { recursive: true, force: true }))
const clean = cleanup.use(makeCopy(tree, folder, 'c'))
const texts = new Map(
  globSync('{appliance,build,runtime,test}/**/*.{ts,mjs}', { cwd: clean.at })
    .toSorted()
    .map((file) => [file, clean.read(file)]),
)
const wanted = values.only.split(',').map((name) => new RegExp(SELECTIONS[name] ?? name))
const listTests = createWitnesses(texts, (test) => wanted.some((pattern) => pattern.test(test)))
const draw = cleanup.use(createDraw(clean.at, texts, Number(values.seed)))
const arrows = listArrows(texts)
const limit = Number(values.minutes) * 60
const tryFault = createTrial({ clean, listTests, limit, signal: ending.signal })
let [taken, drawn] = [0, 0]

const commit = execFileSync('git', ['-C', tree, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).trim()
const places = draw.rooms.flatMap((room) => [...room.places.values()].flat()).length
console.log(
  `${commit.slice(0, 12)}: ${places} places in ${draw.rooms.length} rooms, seed ${values.seed}`,
)
await Promise.all(Array.from({ length: Number(values.workers) }, (_, at) => work(`w${at}`)))
const rooms = [...new Set(results.map(({ room }) => room))].toSorted()
console.log(`\n${renderTable('kind', KINDS)}\n\n${renderTable('room', rooms)}`)
if (ending.signal.aborted) process.exitCode = 130

async function work(name: string) {
  using copy = makeCopy(tree, folder, name)
  while (!ending.signal.aborted) {
    const fault = takeFault()
    if (fault === null) return
    const result = await tryFault(fault, copy)
    if (result !== null) keep(fault, result)
  }
}

/** The next fault that the types do not find. */
function takeFault() {
  while (taken < Number(values.count)) {
    const fault = draw.draw()
    if (fault === null) return null
    drawn += 1
    const numbered = { ...fault, number: drawn }
    const importers = arrows.filter(({ to }) => to === fault.file).map(({ from }) => from)
    const reason = draw.judge(
      fault,
      importers.filter((file) => file.endsWith('.ts')),
    )
    if (reason === null) {
      taken += 1
      return numbered
    }
    keep(numbered, { outcome: 'types', test: null, reason, seconds: 0, tried: 0, tests: 0 })
  }
  return null
}

function keep(fault: Fault & { readonly number: number }, result: FaultResult) {
  results.push({ ...fault, result })
  console.log(`${describeFault(fault)}  ${describeResult(result)}`)
  if (values.json === undefined) return
  const faults = results.toSorted((one, two) => one.number - two.number)
  writeFileSync(values.json, `${JSON.stringify({ commit, faults }, withoutText, 2)}\n`)
}

function withoutText(key: string, value: unknown): unknown {
  return key === 'text' ? undefined : value
}

/** `#7 limit off by one  runtime/….ts:12  a < b → a <= b`. */
function describeFault({ number, kind, file, line, before, after }: Omit<NumberedFault, 'result'>) {
  const [from = [], to = []] = [before, after].map((text) =>
    text.split('\n').map((one) => one.trim()),
  )
  const start = from.findIndex((text, at) => text !== to[at])
  const change = [from, to].map((lines) => lines[start]?.slice(0, 100) || 'nothing').join(' → ')
  return `#${number} ${kind}  ${file}:${line}  ${change}`
}

function describeResult({ outcome, test, seconds, tried, tests, reason }: FaultResult): string {
  if (outcome === 'types') return `found by types: ${reason.slice(0, 100)}`
  const after = `after ${seconds.toFixed(0)} s`
  if (outcome === 'found') return `found by ${test} ${after}`
  return `${outcome} ${after}, ${tried} of ${tests} test files`
}

/** How many had which outcome, by kind or by room, and in all. */
function renderTable(by: 'kind' | 'room', names: readonly string[]): string {
  const rows = [...names, 'All'].map((name) => {
    const among = results.filter((fault) => name === 'All' || fault[by] === name)
    return [
      name,
      ...OUTCOMES.map((one) => among.filter(({ result }) => result.outcome === one).length),
    ]
  })
  const head = [
    [by, ...OUTCOMES],
    ['---', ...OUTCOMES.map(() => '---:')],
  ]
  return [...head, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
