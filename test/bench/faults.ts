/** `pnpm bench:faults`: faults drawn by a seed are made in copies of a tree, and the tests that load them have to find them. */
import { execFileSync } from 'node:child_process'
import { chmodSync, globSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { listArrows } from '#test/support/arrows.ts'
import { SELECTIONS } from '#test/support/runner/selections.ts'
import { makeCopy } from './faults/copies.ts'
import { createDraw, type Fault } from './faults/draw.ts'
import { KINDS } from './faults/places.ts'
import { createTrial, OUTCOMES, type FaultResult } from './faults/trial.ts'
import { createWitnesses } from './faults/witnesses.ts'

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
