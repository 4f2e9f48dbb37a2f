import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseRunColumn, RUN_KEYS, type RunColumn } from '#fleet/run/rules/run-record.ts'
import type { RunResult } from '#engine/inventory/rules/run.ts'
import { sortRows } from '#fleet/machine/rules/query.ts'
import { macOf } from '#test/support/server/state.ts'

const test = suite('the order of runs')

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()

const figures = (seconds: number, isReported = true, verified: boolean | null = null) => {
  const steps = [
    { phase: 'write', at: at(0) },
    { phase: 'done', at: at(seconds) },
  ]
  return JSON.stringify([at(0), at(seconds), at(seconds), 1000, steps, isReported, verified])
}

interface Fields {
  readonly result?: RunResult | null
  readonly value?: string | null
}

/** The positions of the rows in the order of the column. */
function order(sort: string, fields: readonly Fields[]): readonly number[] {
  const column = parseRunColumn(sort)
  if (column === null) throw new Error(`no column: ${sort}`)
  const rows = fields.map(({ result = 'done', value = null }, n) => ({
    n,
    key: RUN_KEYS[column](
      { n, mac: macOf(n + 1), result, value },
      {
        nameKeyOf: (mac) => (mac === macOf(1) ? 'zebra' : 'ant'),
        isStalled: (mac) => mac === macOf(2),
      },
    ),
  }))
  return sortRows(rows, sort, ({ key }) => key).map(({ n }) => n)
}

test('each column in both directions, what is unknown last', () => {
  const rows: readonly (readonly [RunColumn, readonly Fields[], readonly number[]])[] = [
    ['state', [{ result: null }, { result: null }, { result: 'failed' }, {}], [1, 2, 0, 3]],
    ['machine', [{}, {}], [1, 0]],
    ['image', [{ value: 'debian-13' }, { value: 'Debian-9' }, { value: null }], [1, 0, 2]],
    ['disk', [{ value: 'b' }, { value: 'A' }, {}], [1, 0, 2]],
    ['armer', [{ value: 'token:ci' }, { value: 'operator' }, {}], [1, 0, 2]],
    ['started', [{ value: '2026-02' }, { value: '2026-01' }], [1, 0]],
    [
      'duration',
      [{ value: figures(9) }, { value: figures(3) }, { value: figures(1), result: 'lost' }],
      [1, 0, 2],
    ],
    [
      'rate',
      [{ value: figures(1) }, { value: figures(9) }, { value: figures(9, false) }],
      [1, 0, 2],
    ],
    [
      'verified',
      [{ value: figures(1, true, true) }, { value: figures(1, true, false) }, {}],
      [1, 0, 2],
    ],
  ]
  for (const [column, fields, expected] of rows) {
    assert.equal(order(column, fields), expected, column)
    const [first = 0, second = 1, ...rest] = expected
    if (rest.length < 2) assert.equal(order(`-${column}`, fields), [second, first, ...rest], column)
  }
})

test('only columns that exist', () => {
  assert.is(parseRunColumn('-rate'), 'rate')
  assert.is(parseRunColumn('constructor'), null)
  assert.is(parseRunColumn(undefined), null)
})

test.run()
