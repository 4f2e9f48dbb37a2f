/** What a run of `pnpm bench:faults` keeps: each fault with its result, and the tables of all. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { Fault } from './draw.ts'
import { KINDS } from './places.ts'

/** `types`: tsc finds it, and no test is asked; `gone`: the lines of an earlier run's fault are no longer there. */
export const OUTCOMES = ['found', 'not found', 'not finished', 'types', 'gone'] as const

export interface FaultResult {
  readonly outcome: (typeof OUTCOMES)[number]
  /** The test that found it, from the tree's folder, or null. */
  readonly test: string | null
  /** The selection that the test belongs to, or null. */
  readonly selection: string | null
  /** The first failure, or the message of tsc. */
  readonly reason: string
  /** How long tests ran for it until then. */
  readonly seconds: number
  /** How many test files ran, of how many that load the file. */
  readonly tried: number
  readonly tests: number
}

export interface RecordedFault extends Fault {
  /** Its place in the draw, from 1. */
  readonly number: number
  readonly result: FaultResult
}

export interface FaultRecord {
  readonly seed: number
  readonly commit: string
  readonly minutes: number
  readonly only: string
  readonly faults: readonly RecordedFault[]
}

export const readRecord = (file: string): FaultRecord => JSON.parse(readFileSync(file, 'utf8'))

/** A run that is killed leaves the record whole. */
export function writeRecord(file: string, record: FaultRecord) {
  const faults = record.faults.toSorted((one, two) => one.number - two.number)
  writeFileSync(`${file}.part`, `${JSON.stringify({ ...record, faults }, null, 2)}\n`)
  renameSync(`${file}.part`, file)
}

/** `#7 limit off by one  runtime/….ts:12  a < b → a <= b  found by … after 3 s`. */
export function describeFault({ number, kind, file, line, before, after, result }: RecordedFault) {
  const lines = [before, after].map((text) => text.split('\n').map((one) => one.trim()))
  const [from = [], to = []] = lines
  const start = from.findIndex((text, at) => text !== to[at])
  const shorten = (texts: readonly string[]) => texts[start]?.slice(0, 100) || 'nothing'
  const change = `${shorten(from)} → ${shorten(to)}`
  return `#${number} ${kind}  ${file}:${line}  ${change}  ${describeResult(result)}`
}

function describeResult({ outcome, test, seconds, tried, tests, reason }: FaultResult): string {
  const after = `after ${seconds.toFixed(0)} s`
  if (outcome === 'found') return `found by ${test} ${after}`
  if (outcome === 'types') return `found by types: ${reason.slice(0, 100)}`
  return outcome === 'gone' ? outcome : `${outcome} ${after}, ${tried} of ${tests} test files`
}

/** The counts by kind, by room and by the selection of the test that found it. */
export function renderSummary(faults: readonly RecordedFault[]): string {
  const rooms = [...new Set(faults.map(({ room }) => room))].toSorted()
  const shown = faults.map(({ result: { selection, outcome } }) => selection ?? outcome)
  const selections = Map.groupBy(shown, (name) => name)
  return [
    renderTable('Kind', KINDS, (fault) => fault.kind, faults),
    renderTable('Room', rooms, (fault) => fault.room, faults),
    ['| Found by | Faults |', '| --- | ---: |']
      .concat([...selections].toSorted().map(([name, all]) => `| ${name} | ${all.length} |`))
      .join('\n'),
  ].join('\n\n')
}

function renderTable(
  title: string,
  names: readonly string[],
  nameOf: (fault: RecordedFault) => string,
  faults: readonly RecordedFault[],
): string {
  const rowOf = (name: string, among: readonly RecordedFault[]) => {
    const counts = OUTCOMES.map(
      (one) => among.filter(({ result }) => result.outcome === one).length,
    )
    return `| ${[name, ...counts].join(' | ')} |`
  }
  return [
    `| ${[title, ...OUTCOMES].join(' | ')} |`,
    `| --- |${' ---: |'.repeat(OUTCOMES.length)}`,
    ...names.map((name) =>
      rowOf(
        name,
        faults.filter((fault) => nameOf(fault) === name),
      ),
    ),
    rowOf('All', faults),
  ].join('\n')
}
