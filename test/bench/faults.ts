/** `pnpm bench:faults`: faults drawn by a seed are made in copies of a tree, and the tests that load them have to find them. */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { makeCopy } from './faults/copies.ts'
import { applyFault, createDraw, type Fault } from './faults/draw.ts'
import { describeFault, readRecord, renderSummary, writeRecord } from './faults/record.ts'
import type { FaultResult, RecordedFault } from './faults/record.ts'
import { createTrial } from './faults/trial.ts'
import { createWitnesses } from './faults/witnesses.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '120' },
    minutes: { type: 'string' },
    workers: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
    tree: { type: 'string', default: path.join(import.meta.dirname, '../..') },
    json: { type: 'string' },
    resume: { type: 'string' },
    again: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(`pnpm bench:faults [--seed 1] [--count 120] [--minutes 10] [--workers 2] [--only SELECTION,…]
                  [--tree CHECKOUT] [--json FILE] [--resume FILE] [--again FILE]

Draws faults of seven kinds from runtime/ of the tree's commit. Those that tsc finds are listed apart; for each
other one, the test files that load its file run until one fails, nearest first, at most --minutes. A test is a
witness when it fails twice with the fault and passes without. --json keeps the results; --resume goes on with
such a file, and with more --minutes tries again what was not finished; --again tries the faults of such a file
instead of drawing, wherever their lines are now.`)
  process.exit(0)
}

const tree = realpathSync(values.tree)
const commit = execFileSync('git', ['-C', tree, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).trim()
const record = values.resume === undefined ? null : readRecord(values.resume)
if (record !== null && record.commit !== commit) throw new Error(`it is of commit ${record.commit}`)
const { seed, only } = record ?? { seed: Number(values.seed), only: values.only }
const minutes = Number(values.minutes ?? record?.minutes ?? 10)
const json = values.json ?? values.resume
const again =
  values.again === undefined
    ? null
    : readRecord(values.again).faults.filter(({ result }) => result.outcome !== 'types')
const count = again?.length ?? Number(values.count)
/** With more minutes than before, what was not finished has another turn. */
const isKept = ({ result }: RecordedFault) =>
  result.outcome !== 'not finished' || minutes <= (record?.minutes ?? 0)
const results = new Map(record?.faults.filter(isKept).map((one) => [one.number, one]))

const ending = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => ending.abort())

const folder = mkdtempSync(path.join(os.tmpdir(), 'faults-'))
chmodSync(folder, 0o755)
using cleanup = new DisposableStack()
cleanup.defer(() => rmSync(folder, { recursive: true, force: true }))
const clean = cleanup.use(makeCopy(tree, folder, 'c'))
const selections = await readSelections()
const wanted = only === '' ? [''] : only.split(',').map((name) => selections.get(name) ?? name)
const witnesses = createWitnesses(clean.at, (test) =>
  wanted.some((pattern) => new RegExp(pattern).test(path.relative('test', test))),
)
const draw = cleanup.use(createDraw(clean.at, seed))
const tryFault = createTrial({
  clean,
  listTests: witnesses.listTests,
  selectionOf: (test) =>
    [...selections].find(([, pattern]) =>
      new RegExp(pattern).test(path.relative('test', test)),
    )?.[0] ?? null,
  limit: minutes * 60,
  signal: ending.signal,
})
const source = listFaults()
let [taken, ended] = [0, 0]
const began = performance.now()

const places = draw.rooms.flatMap((room) => [...room.places.values()].flat()).length
console.log(`${commit.slice(0, 12)}: ${places} places in ${draw.rooms.length} rooms, seed ${seed}`)
await Promise.all(Array.from({ length: Number(values.workers) }, (_, at) => work(`w${at}`)))
console.log(`\n${renderSummary([...results.values()])}`)
if (ending.signal.aborted) {
  console.log('\nThe run was ended before its end; --resume goes on with its record')
  process.exitCode = 130
}

async function work(name: string) {
  using copy = makeCopy(tree, folder, name)
  while (!ending.signal.aborted) {
    const fault = takeFault()
    if (fault === null) return
    const result = await tryFault(fault, copy)
    if (result !== null) keep({ ...fault, result })
  }
}

function* listFaults(): Generator<Fault & { readonly number: number }> {
  if (again !== null) return yield* again
  for (let number = 1; ; number += 1) {
    const fault = draw.draw()
    if (fault === null) return
    yield { ...fault, number }
  }
}

/** The next fault that has no result and that the types do not find. */
function takeFault() {
  while (taken < count) {
    const { value: fault, done = false } = source.next()
    if (done) return null
    const known = results.get(fault.number)?.result
    const result = known ?? judge(fault)
    if (result?.outcome !== 'types') taken += 1
    if (result === null) return fault
    if (known === undefined) keep({ ...fault, result })
  }
  return null
}

/** What is found before a test runs. */
function judge(fault: Fault): FaultResult | null {
  const none = { test: null, selection: null, reason: '', seconds: 0, tried: 0, tests: 0 }
  const isThere = existsSync(path.join(clean.at, fault.file))
  const text = isThere ? applyFault(clean.read(fault.file), fault) : null
  if (text === null) return { ...none, outcome: 'gone' }
  const reason = draw.judge(fault.file, text, witnesses.listImporters(fault.file))
  return reason === null ? null : { ...none, outcome: 'types', reason }
}

function keep(fault: RecordedFault) {
  results.set(fault.number, fault)
  console.log(describeFault(fault))
  if (json !== undefined)
    writeRecord(json, { seed, commit, minutes, only, faults: [...results.values()] })
  if (fault.result.outcome === 'types') return
  ended += 1
  const all = [...results.values()].filter(({ result }) => result.outcome !== 'types')
  const found = all.filter(({ result }) => result.outcome === 'found').length
  const left = (((performance.now() - began) / ended) * (count - all.length)) / 60_000
  console.log(`  ${all.length} of ${count}, ${found} found, about ${Math.ceil(left)} min left`)
}

/** The patterns of the tree's selections by name; a tree may have none. */
async function readSelections(): Promise<ReadonlyMap<string, string>> {
  const file = path.join(clean.at, 'test/support/runner/selections.ts')
  if (!existsSync(file)) return new Map()
  const { SELECTIONS = {} } = await import(pathToFileURL(file).href)
  const entries: [string, unknown][] = Object.entries(SELECTIONS)
  return new Map(
    entries.flatMap(([name, pattern]) => (typeof pattern === 'string' ? [[name, pattern]] : [])),
  )
}
