import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MAX_LOG_BYTES, MAX_PROGRESS_BYTES } from '#engine/inventory/rules/run.ts'
import { PASSWORD, startSite } from '#test/support/browser/browser.ts'
import { login } from '#test/support/server/flasher-web.ts'
import { entryOf, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import {
  asJson,
  checkUp,
  createTestServer,
  readJson,
  type TestServer,
} from '#test/support/server/server.ts'
import { macOf } from '#test/support/server/web-machines.ts'

const MAC = '52:54:00:00:00:01'
const test = suite('runs over HTTP')

type Fields = Parameters<typeof bodyOf>[0]
const report = (server: TestServer, fields: Fields = {}, mac = MAC) =>
  server.request(`/pxe/${mac}/progress`, asJson(bodyOf(fields)))
const sendLog = (server: TestServer, body: string, run = runIdOf(1)) =>
  server.request(`/pxe/${MAC}/log?run=${run}`, { method: 'POST', body })
const meet = (server: TestServer, mac = MAC) => server.request(`/pxe/${mac}`)

test('from the first post to the history', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await meet(server)
  const image = { name: 'debian.img.zst', sha256: 'a'.repeat(64), format: 'img.zst' }
  const disk = { path: '/dev/sda', model: 'SSD 980', serial: 'S5GX', size_bytes: 500e9 }
  for (const fields of [
    { phase: 'started', image, disk, mode: 'interactive' },
    { bytes_read: 10, bytes_written: 40, total_bytes: 100, rate: 20, eta_seconds: 3 },
    { phase: 'verify', bytes_written: 90, total_bytes: 90 },
    { phase: 'done', bytes_read: 30, bytes_written: 100, total_bytes: 100, verified: true },
  ] as const) {
    const answer = await report(server, fields)
    assert.is(answer.status, 204)
    assert.is(await answer.text(), '')
  }
  const { runs, next, total } = await readJson(ask(`/machines/${MAC}/runs`))
  assert.equal([runs.length, next, total], [1, null, 1])
  const [run] = runs
  assert.is(run.state, 'done')
  assert.is(run.verified, true)
  assert.is(run.bytes_written, 100)
  assert.is(run.image.name, 'debian.img.zst')
  assert.is(run.disk.serial, 'S5GX')
  assert.is(typeof run.seconds, 'number')
  assert.equal((await readJson(ask(`/machines/${MAC}/runs/${run.id}`))).id, run.id)
  assert.equal((await readJson(ask('/runs?state=done'))).total, 1)
  assert.equal((await readJson(ask('/runs?state=failed'))).total, 0)
  assert.equal((await readJson(ask(`/runs?serial=S5GX&q=980&mac=${MAC}`))).total, 1)
  await checkUp(server)
})

test('a page of those that go on says how many there are, and which is the last', async () => {
  const clock = { now: Date.parse('2026-11-21T08:00:00Z') }
  await using server = await createTestServer({ now: () => new Date(clock.now) })
  const ask = await server.operator()
  for (const n of [1, 2, 3]) {
    const mac = `52:54:00:00:00:0${n}`
    await meet(server, mac)
    assert.is((await report(server, { run: runIdOf(n), phase: 'write' }, mac)).status, 204)
  }
  for (const state of ['running', 'stalled']) {
    const first = await readJson(ask(`/runs?state=${state}&limit=2`))
    assert.equal([first.runs.length, first.next, first.total], [2, 2, 3], state)
    const last = await readJson(ask(`/runs?state=${state}&limit=2&before=${first.next}`))
    assert.equal([last.runs.length, last.next, last.total], [1, null, 3], state)
    assert.is((await readJson(ask(`/runs?state=${state}&limit=3`))).next, null)
    clock.now += 60_000
    await server.runs.sweep()
  }
  assert.is((await readJson(ask('/runs?state=running'))).total, 0)
  await checkUp(server)
})

test('who may do what', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  assert.is((await report(server)).status, 404)
  await meet(server)
  assert.is((await report(server)).status, 204)
  for (const path of ['/runs', '/runs.csv', '/runs.json', `/machines/${MAC}/runs`]) {
    assert.is((await server.request(path)).status, 401, path)
    assert.is((await ask(path)).status, 200, path)
  }
  assert.is((await ask('/machines/52:54:00:00:00:09/runs')).status, 404)
  assert.is((await ask(`/machines/${MAC}/runs/${runIdOf(2)}`)).status, 404)
  assert.is((await ask(`/machines/${MAC}/runs/${runIdOf(1)}/log`)).status, 404)
  assert.is((await ask('/runs?state=great')).status, 422)
  assert.is((await ask('/runs?limit=0')).status, 422)
})

test('where boot tokens are required, a post without one is not taken', async () => {
  await using server = await createTestServer({ env: { FLASHER_PXE_TOKENS: 'require' } })
  await meet(server)
  assert.is((await report(server)).status, 401)
  assert.is((await sendLog(server, 'x')).status, 401)
  assert.is(server.runs.count({}), 0)
})

test('bodies that are none', async () => {
  await using server = await createTestServer()
  await meet(server)
  const bad: readonly object[] = [
    {},
    { ...bodyOf(), run: '../../x' },
    { ...bodyOf(), phase: 'lost' },
    { ...bodyOf(), bytes_written: -1 },
    { ...bodyOf(), bytes_written: 1e300 },
    { ...bodyOf(), rate: 'fast' },
  ]
  for (const body of bad) {
    const answer = await server.request(`/pxe/${MAC}/progress`, asJson(body))
    assert.is(answer.status, 422)
    assert.ok(Array.isArray((await answer.json()).detail))
  }
  const large = { ...bodyOf(), reason: 'x'.repeat(MAX_PROGRESS_BYTES) }
  const answer = await server.request(`/pxe/${MAC}/progress`, asJson(large))
  assert.is(answer.status, 413)
  assert.is(server.runs.listRunning().length, 0)
  await checkUp(server)
})

test('texts of every kind are kept as texts', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await meet(server)
  const texts = ['a\0b', '\ud800', '\u202e', '${7*7}', '<b>', '__proto__', '"; DROP TABLE runs; --']
  for (const [n, name] of texts.entries()) {
    const fields = { run: runIdOf(n), image: { name }, disk: { path: name, serial: name } }
    assert.is((await report(server, { ...fields, phase: 'failed', reason: name })).status, 204)
    assert.is((await sendLog(server, name, runIdOf(n))).status, 204)
    assert.is((await ask(`/runs?${new URLSearchParams({ q: name })}`)).status, 200)
  }
  const runs = await readJson(ask('/runs.json'))
  assert.is(runs.length, texts.length)
  const [{ image, reason, disk }] = runs.slice(-1)
  assert.equal([image.name, reason], ['a\ufffdb', 'a\ufffdb'], 'they reach terminals as they are')
  assert.equal([disk.path, disk.serial], ['a\0b', 'a\0b'], 'they must match exactly')
  await checkUp(server)
})

test('10,000 run ids of one box are few, and nobody else notices', async () => {
  await using server = await createTestServer()
  await meet(server)
  await meet(server, '52:54:00:00:00:02')
  const answers = new Map<number, number>()
  for (let n = 0; n < 10_000; n += 1) {
    const { status, headers } = await report(server, { run: runIdOf(n) })
    answers.set(status, (answers.get(status) ?? 0) + 1)
    if (status === 429) assert.ok(Number(headers.get('retry-after')) > 0)
  }
  assert.ok((answers.get(204) ?? 0) <= 25, `${answers.get(204)} were taken`)
  assert.is(server.runs.count({}), answers.get(204))
  assert.is((await report(server, {}, '52:54:00:00:00:02')).status, 204)
  const events = await server.journal.list({ limit: 500 })
  assert.ok(events.length < 100, `${events.length} events`)
  await checkUp(server)
})

test('a log is kept as text, its tail, and shown to operators alone', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await meet(server)
  assert.is((await sendLog(server, 'x')).status, 404)
  await report(server, { phase: 'failed', reason: 'I/O error' })
  assert.is((await sendLog(server, 'x', 'a')).status, 404)
  const text = `${'.'.repeat(2 * MAX_LOG_BYTES)}<script>alert(1)</script>`
  assert.is((await sendLog(server, text)).status, 204)
  const path = `/machines/${MAC}/runs/${runIdOf(1)}/log`
  assert.is((await server.request(path)).status, 401)
  const answer = await ask(path)
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/)
  assert.is(answer.headers.get('x-content-type-options'), 'nosniff')
  const kept = await answer.text()
  assert.is(kept.length, MAX_LOG_BYTES)
  assert.ok(kept.endsWith('</script>'))
  assert.is((await sendLog(server, 'y'.repeat(5 * 2 ** 20))).status, 413)
})

test('a client that only says plan and done has its run, by the record', async () => {
  const ref = 'c'.repeat(64)
  await using server = await createTestServer({
    catalog: [
      {
        ref,
        name: 'debian.img.zst',
        src: 'https://images.test/debian.img.zst',
        resolvedSrc: null,
        url: 'https://images.test/debian.img.zst',
        format: 'img.zst',
        arch: 'x86_64',
        sha256: 'd'.repeat(64),
        sizeBytes: 400,
        description: null,
      },
    ],
  })
  const ask = await server.operator()
  await ask(
    `/machines/${MAC}`,
    asJson(
      { boot_mode: 'flasher-flash-once', bty_image_ref: ref, target_disk_serial: 'S5GX' },
      'PUT',
    ),
  )
  const disk = { path: '/dev/sda', serial: 'S5GX', model: 'SSD 980', tran: 'nvme', size: '1T' }
  await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [disk] }))
  const plan = await readJson(server.request(`/pxe/${MAC}/plan`))
  assert.is(plan.mode, 'flash')
  assert.is((await server.request(`/pxe/${MAC}/done`, { method: 'POST' })).status, 204)
  assert.is((await server.request(`/pxe/${MAC}/done`, { method: 'POST' })).status, 204)
  const { runs, total } = await readJson(ask('/runs'))
  assert.is(total, 1)
  const [run] = runs
  assert.equal([run.state, run.mode, run.reported], ['done', 'flash', false])
  assert.equal([run.image.name, run.image.ref], ['debian.img.zst', ref])
  assert.equal([run.disk.serial, run.disk.model], ['S5GX', 'SSD 980'])
  assert.is(run.armed_by.actor, 'operator')
  const [flashed] = await server.journal.list({ kind: 'machine.flashed', limit: 1 })
  assert.is(flashed?.details?.['run'], run.id)
  const metrics = await (await ask('/metrics')).text()
  assert.match(metrics, 'flasher_flash_total{result="done",format="img.zst"} 1\n')
})

test('done and failed end the open run, and events name it', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await meet(server)
  await report(server, { phase: 'started' })
  await report(server, { bytes_written: 7 })
  const failed = asJson({ status: 'failed', reason: 'disk gone' })
  assert.is((await server.request(`/pxe/${MAC}/status`, failed)).status, 204)
  const run = await readJson(ask(`/machines/${MAC}/runs/${runIdOf(1)}`))
  assert.equal([run.state, run.reason, run.bytes_written], ['failed', 'disk gone', 7])
  await report(server, { phase: 'write', bytes_written: 9 })
  assert.is((await readJson(ask('/runs?state=running'))).total, 0)
  const events = await server.journal.list({ limit: 50 })
  for (const kind of ['machine.flash_started', 'machine.flash_failed']) {
    assert.is(events.find((event) => event.kind === kind)?.details?.['run'], runIdOf(1), kind)
  }
  const metrics = await (await ask('/metrics')).text()
  assert.match(metrics, 'flasher_flash_total{result="failed",format="other"} 1\n')
  assert.match(metrics, 'flasher_flash_seconds_count{result="failed"} 1\n')
  assert.match(metrics, 'flasher_flash_bytes_total 7\n')
  assert.match(metrics, 'flasher_runs{state="running"} 0\n')
})

test('a deleted machine leaves its history, and no run that goes on', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await meet(server)
  await report(server)
  await ask(`/machines/${MAC}`, { method: 'DELETE' })
  assert.is((await report(server)).status, 404)
  const { runs } = await readJson(ask(`/machines/${MAC}/runs`))
  assert.equal([runs[0].state, runs[0].reason], ['lost', 'Its machine was deleted.'])
})

test('who armed it: person, token, and where from; a re-armed flash keeps the name', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const made = await ask('/tokens', asJson({ name: 'ci', scopes: ['machines'] }))
  const { token } = await made.json()
  const put = { boot_mode: 'flasher-flash-always', target_disk_serial: 'S1' }
  await server.request(`/machines/${MAC}`, {
    ...asJson({ ...put, bty_image_ref: 'c'.repeat(64) }, 'PUT'),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
  })
  await report(server, { phase: 'done' })
  assert.is((await server.request(`/pxe/${MAC}/done`, { method: 'POST' })).status, 204)
  await report(server, { run: runIdOf(2) })
  await ask(`/machines/${MAC}`, asJson({ ...put, bty_image_ref: 'e'.repeat(64) }, 'PUT'))
  await report(server, { run: runIdOf(3) })
  const { runs } = await readJson(ask('/runs'))
  assert.equal(
    runs.map((run: { armed_by: { actor: string } }) => run.armed_by.actor),
    ['operator', 'token:ci', 'token:ci'],
  )
})

test('the document knows every route of runs, with the schema that validates', async () => {
  await using server = await createTestServer()
  const { paths } = await readJson(server.request('/openapi.json'))
  const post = paths['/pxe/{mac}/progress'].post.requestBody.content['application/json'].schema
  assert.ok(post.properties.phase.enum.includes('verify'))
  for (const path of ['/runs', '/runs.csv', '/runs.json', '/machines/{mac}/runs']) {
    assert.ok(paths[path]?.get, path)
  }
  assert.ok(paths['/pxe/{mac}/log']?.post)
})

const LEFT = { name: 'http://10.1.0.5:8081', bytes: 3_000_000, trouble: 'the server is slow' }
const LAST = { name: 'http://10.0.0.2:8081', bytes: 1_500_000 }

test('a run keeps the last word on its sources, also where only its end brings it', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const write = (fields: object) =>
    server.request(`/pxe/${MAC}/progress`, asJson({ ...bodyOf({ phase: 'write' }), ...fields }))
  const sourcesNow = async () => (await readJson(ask('/runs.json')))[0].sources
  await write({ phase: 'started' })
  assert.is(await sourcesNow(), null)
  await write({ sources: [{ ...LEFT, trouble: null, bytes: 5 }] })
  await write({ sources: [LEFT, LAST] })
  const whole = [LEFT, { ...LAST, trouble: null }]
  assert.equal(await sourcesNow(), whole)
  // What cannot be one costs only itself: the post counts.
  for (const sources of ['x', [{ name: 1 }], Array.from({ length: 50 }, () => LAST)]) {
    assert.is((await write({ sources })).status, 204)
  }
  assert.equal(await sourcesNow(), whole)
  const evil = { name: 'a\u001b]0;owned\u0007', bytes: 1, trouble: 'x'.repeat(5000) }
  await write({ sources: [evil] })
  const [shown] = await sourcesNow()
  assert.equal([shown.name, shown.trouble.length], ['a\ufffd]0;owned\ufffd', 200])
  await write({ phase: 'done', sources: [LEFT, LAST] })
  assert.equal(await sourcesNow(), whole)
})

test('the page says how much came from where, and why a cache was left', async () => {
  await using site = await startSite()
  const { cookie } = await login(site.url, PASSWORD)
  const run = 'c0ffee00-0001'
  await site.boxes.boot(1)
  await site.boxes.report(1, { run, phase: 'write', sources: [LEFT, LAST] })
  const url = `${site.url}/ui/machines/${macOf(1)}/runs/${run}`
  const page = await (await fetch(url, { headers: { cookie } })).text()
  const text = page.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ')
  assert.match(text, `Read from ${LEFT.name}: 3.00 MB, then left (the server is slow)`)
  assert.match(text, `${LAST.name}: 1.50 MB`)
})

const reportExported = (server: TestServer, fields: Parameters<typeof bodyOf>[0], mac = MAC) =>
  server.request(`/pxe/${mac}/progress`, asJson(bodyOf(fields)))

test('pages of the history follow each other', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (let n = 0; n < 25; n += 1) {
    const mac = `52:54:00:00:01:${n.toString(16).padStart(2, '0')}`
    await meet(server, mac)
    await reportExported(server, { run: runIdOf(n), phase: 'done' }, mac)
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
    assert.is((await reportExported(server, fields)).status, 204)
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
  await reportExported(server, { phase: 'failed', image: { name: wild }, disk, reason: wild })
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

test('a client that tells nothing but its end is in the history', async () => {
  const clock = { now: Date.parse('2027-01-01T00:00:00Z') }
  await using server = await createTestServer({
    catalog: [entryOf(REF)],
    now: () => new Date(clock.now),
  })
  const ask = await server.operator()
  const history = () => readJson(ask(`/machines/${MAC}/runs`))
  const tell = async (path: string, init: RequestInit = { method: 'POST' }) => {
    clock.now += 1000
    assert.is((await server.request(`/pxe/${MAC}${path}`, init)).status, 204)
  }
  const put = async (boot_mode: string) => {
    clock.now += 1000
    const body = { boot_mode, bty_image_ref: REF, target_disk_serial: 'S1' }
    assert.is((await ask(`/machines/${MAC}`, asJson(body, 'PUT'))).status, 200)
  }
  await put('flasher-flash-once')
  await tell('/done')
  assert.is((await history()).total, 0, 'no live boot was offered')
  await put('flasher-flash-always')
  clock.now += 1000
  const offered = new Date(clock.now).toISOString()
  await server.request(`/pxe/${MAC}`)
  await tell('/done')
  const [run] = (await history()).runs
  assert.equal([run.state, run.mode, run.reported, run.bytes_written], ['done', 'flash', false, 0])
  assert.equal([run.started_at, run.seconds, run.image.ref], [offered, 1, REF])
  await tell('/done')
  assert.is((await history()).total, 1, 'told again')
  await put('flasher-flash-once')
  await server.request(`/pxe/${MAC}`)
  await tell('/status', asJson({ status: 'failed', reason: 'no disk' }))
  await tell('/status', asJson({ status: 'failed', reason: 'no disk' }))
  clock.now += 1000
  await server.request(`/pxe/${MAC}`)
  await tell('/done')
  await tell('/done')
  const states = (await history()).runs.map(({ state }: { readonly state: string }) => state)
  assert.equal(states, ['done', 'failed', 'done'])
})

test.run()
