import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, readJson, type TestServer } from '#test/support/server/server.ts'

const MAC = '52:54:00:00:00:01'
const test = suite('runs as pages and files')

const report = (server: TestServer, fields: Parameters<typeof bodyOf>[0], mac = MAC) =>
  server.request(`/pxe/${mac}/progress`, asJson(bodyOf(fields)))
const meet = (server: TestServer, mac = MAC) => server.request(`/pxe/${mac}`)

test('pages of the history follow each other', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (let n = 0; n < 25; n += 1) {
    const mac = `52:54:00:00:01:${n.toString(16).padStart(2, '0')}`
    await meet(server, mac)
    await report(server, { run: runIdOf(n), phase: 'done' }, mac)
  }
  const seen: string[] = []
  let before: number | null = null
  do {
    const query: string = before === null ? '' : `&before=${before}`
    const page = await readJson(ask(`/runs?limit=10${query}`))
    seen.push(...page.runs.map((run: { id: string }) => run.id))
    before = page.next
  } while (before !== null)
  assert.is(new Set(seen).size, 25)
  assert.is(seen[0], runIdOf(24))
  assert.is((await readJson(ask('/runs.json'))).length, 25)
})

test('CSV: one row a run, and no cell that a spreadsheet would calculate', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await meet(server)
  const formulas = ['=cmd|"/c calc"!A1', '+1+1', '-2+3', '@SUM(A1)', '\t=1', ' =1', '\r=1', '＝1']
  for (const [n, name] of formulas.entries()) {
    const disk = { path: name, serial: 'a,"b"\n=c', model: name }
    const fields = {
      run: runIdOf(n),
      phase: 'failed',
      image: { name },
      disk,
      reason: name,
    } as const
    assert.is((await report(server, fields)).status, 204)
  }
  const answer = await ask('/runs.csv')
  assert.match(answer.headers.get('content-type') ?? '', /^text\/csv/)
  assert.match(answer.headers.get('content-disposition') ?? '', /^attachment/)
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(await answer.arrayBuffer())
  assert.ok(text.startsWith('\ufeffmac,'), 'a byte order mark, once')
  const rows = parseCsv(text)
  assert.is(rows.length, formulas.length + 1)
  const width = rows[0]?.length
  for (const row of rows.slice(1)) {
    assert.is(row.length, width)
    for (const cell of row) assert.not.match(cell, /^[\s\0]*[=+\-@＝]/)
  }
  assert.ok(text.includes('"\'=cmd|""/c calc""!A1"'), text)
})

test('no control character of a machine leaves the server in CSV or in a log', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await meet(server)
  const wild = 'a\u001b]0;title\u0007\0b\u009b2J\tc\nd'
  const disk = { path: wild, serial: wild }
  await report(server, { phase: 'failed', image: { name: wild }, disk, reason: wild })
  const log = { method: 'POST', body: wild }
  assert.is((await server.request(`/pxe/${MAC}/log?run=${runIdOf(1)}`, log)).status, 204)
  const shown = String.raw`a\x1b]0;title\x07\x00b\x9b2J` + '\tc\nd'
  const csv = await (await ask('/runs.csv')).text()
  assert.ok(csv.includes(`"${shown}"`), csv)
  assert.not.match(csv, /(?![\t\n\r])\p{Cc}/u)
  const text = await (await ask(`/machines/${MAC}/runs/${runIdOf(1)}/log`)).text()
  assert.is(text, shown)
})

/** Parses CSV as a strict reader does. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  for (const [, quoted, plain, end] of text.matchAll(
    /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g,
  )) {
    row.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'))
    if (end === ',') continue
    rows.push(row)
    row = []
  }
  return rows
}

test.run()
