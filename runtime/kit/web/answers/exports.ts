/** The routes of a table's exports: all rows that its filters find, as CSV and as one JSON array. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { H3Event } from 'h3'
import { download, downloadCsv } from './answers.ts'
import type { Route, SchemaRef } from './route.ts'

interface Export<Row> {
  /** The path of the table: its exports are `{path}.csv` and `{path}.json`. */
  readonly path: `/${string}`
  readonly query: Readonly<Record<string, string>>
  readonly schema: SchemaRef
  /** What a request asks for: the rows after one of them (undefined: the first ones), `STEP` at a time. */
  open(event: H3Event): (last: Row | undefined) => readonly Row[] | Promise<readonly Row[]>
  readonly csvHead: string
  renderCsvRow(row: Row): string
  toWire(row: Row): unknown
}

export const STEP = 500

/** Rows are read `STEP` at a time. */
export function exportRoutes<Row>(of: Export<Row>): readonly Route[] {
  const { path, query, open } = of
  const name = path.slice(1)
  return [
    {
      method: 'GET',
      path: `${path}.csv`,
      access: 'read',
      reach: 'list',
      doc: {
        summary: `All ${name} that the filters find, as CSV`,
        query,
        answers: { 200: { type: 'string', contentMediaType: 'text/csv' } },
        refuses: [422],
      },
      handle: (event) => downloadCsv(renderCsv(of, walk(open(event))), `${name}.csv`),
    },
    {
      method: 'GET',
      path: `${path}.json`,
      access: 'read',
      reach: 'list',
      doc: {
        summary: `All ${name} that the filters find, as one JSON array`,
        query,
        answers: { 200: of.schema },
        refuses: [422],
      },
      handle: (event) =>
        download(renderJson(of, walk(open(event))), 'application/json', `${name}.json`),
    },
  ]
}

/** Part by part, so that a long table is never in memory at once. */
async function* walk<Row>(
  read: ReturnType<Export<Row>['open']>,
): AsyncGenerator<readonly Row[], void> {
  for (let last: Row | undefined; ; await nextTurn()) {
    const found = await read(last)
    if (found.length > 0) yield found
    if (found.length < STEP) return
    last = found.at(-1)
  }
}

type RowBatches<Row> = AsyncIterable<readonly Row[]>

async function* renderCsv<Row>({ csvHead, renderCsvRow }: Export<Row>, parts: RowBatches<Row>) {
  yield csvHead
  for await (const found of parts) yield found.map(renderCsvRow).join('')
}

async function* renderJson<Row>({ toWire }: Export<Row>, parts: RowBatches<Row>) {
  let separator = '[\n'
  for await (const found of parts) {
    yield separator + found.map((row) => JSON.stringify(toWire(row))).join(',\n')
    separator = ',\n'
  }
  yield separator === '[\n' ? '[]\n' : '\n]\n'
}
