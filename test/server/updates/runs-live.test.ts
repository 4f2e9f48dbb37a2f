import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readEvents } from '#test/support/server/event-reader.ts'
import { entryOf, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, type TestServer } from '#test/support/server/server.ts'

const test = suite('runs, live')
const macOf = (n: number) => `52:54:00:00:${hex(n >> 8)}:${hex(n & 255)}`
const hex = (n: number) => n.toString(16).padStart(2, '0')

const report = (server: TestServer, n: number, fields: Parameters<typeof bodyOf>[0] = {}) =>
  server.request(`/pxe/${macOf(n)}/progress`, asJson(bodyOf(fields)))

test('a bar moves with the posts, and no row is rendered for it', async () => {
  let rows = 0
  await using server = await createTestServer({
    views: {
      renderRow({ mac }) {
        rows += 1
        return `<tr id="m-${mac}"></tr>`
      },
    },
  })
  const ask = await server.operator()
  for (let n = 1; n <= 50; n += 1) await server.request(`/pxe/${macOf(n)}`)
  await report(server, 1, { phase: 'write' })
  const events = readEvents(await ask('/events/machines'))
  await events.next()
  const before = rows
  for (let at = 1; at <= 40; at += 1) await report(server, 1, { bytes_written: at })
  const bar = await events.until(({ data }) => data.includes('write 40'))
  assert.equal(bar, { name: 'runs-update', data: `<span id="b-${macOf(1)}">write 40</span>` })
  assert.ok(rows - before <= 3, `${rows - before} rows`)
  await events.close()
})

test('a change of phase, a stall and an end are news of the row', async () => {
  let at = Date.now()
  await using server = await createTestServer({
    now: () => new Date(at),
    views: { renderRow: ({ mac }) => `<tr>${stateOf(server, mac)}</tr>` },
  })
  const ask = await server.operator()
  await server.request(`/pxe/${macOf(1)}`)
  const events = readEvents(await ask('/events/machines'))
  const awaitRow = async (state: string) =>
    assert.ok(await events.until(({ data }) => data === `<tr>${state}</tr>`), state)
  await awaitRow('none')
  await report(server, 1, { phase: 'started' })
  await awaitRow('started')
  await report(server, 1, { phase: 'write' })
  await awaitRow('write')
  at += 40_000
  await server.runs.sweep()
  await awaitRow('stalled')
  await report(server, 1, { phase: 'done' })
  await awaitRow('none')
  await events.close()
})

const stateOf = (server: TestServer, mac: string) => {
  const run = server.runs.findRunning(mac)
  if (run === null) return 'none'
  return run.stalled ? 'stalled' : run.phase
}

test('a box that fell silent and boots anew leaves its run as lost', async () => {
  let at = Date.now()
  await using server = await createTestServer({ now: () => new Date(at) })
  await server.request(`/pxe/${macOf(1)}`)
  await report(server, 1, { bytes_written: 7 })
  await server.request(`/pxe/${macOf(1)}`)
  assert.is(server.runs.findRunning(macOf(1))?.result, null, 'somebody may look at its script')
  at += 40_000
  await server.runs.sweep()
  assert.match(await (await server.request(`/pxe/${macOf(1)}`)).text(), /^#!ipxe/)
  assert.is(server.runs.findRunning(macOf(1)), null)
  assert.is(server.runs.find(macOf(1), runIdOf(1))?.result, 'lost')
  const [lost] = await server.journal.list({ kind: 'machine.flash_lost', limit: 5 })
  assert.is(lost?.details?.['run'], runIdOf(1))
})

/** Events of one kind, and what the metrics count of ends. */
async function recordOf(server: TestServer, kind: string, result: string) {
  const events = await server.journal.list({ kind, limit: 9 })
  const metrics = await (await (await server.operator())('/metrics')).text()
  const line = new RegExp(
    `^flasher_flash_total\\{result="${result}",format="[\\w.]+"\\} (\\d+)$`,
    'm',
  )
  return { runs: events.map(({ details }) => details?.['run']), counted: line.exec(metrics)?.[1] }
}

test('a run of which nothing is heard for a day, and one of a deleted machine, are put on record', async () => {
  let at = Date.now()
  await using server = await createTestServer({ now: () => new Date(at) })
  await server.request(`/pxe/${macOf(1)}`)
  await report(server, 1, { bytes_written: 7 })
  at += 25 * 3_600_000
  await server.runs.sweep()
  await server.runs.sweep()
  const lost = { runs: [runIdOf(1)], counted: '1' }
  assert.equal(await recordOf(server, 'machine.flash_lost', 'lost'), lost)
  await server.request(`/pxe/${macOf(2)}`)
  await report(server, 2, { run: runIdOf(2) })
  const ask = await server.operator()
  assert.is((await ask(`/machines/${macOf(2)}`, { method: 'DELETE' })).status, 204)
  const both = { runs: [runIdOf(2), runIdOf(1)], counted: '2' }
  assert.equal(await recordOf(server, 'machine.flash_lost', 'lost'), both)
})

test('a failure is on record once, whether progress, status or both tell it', async () => {
  for (const told of [
    'progress',
    'status',
    'progress status',
    'status progress',
    'status status',
  ]) {
    await using server = await createTestServer({ catalog: [entryOf(REF)] })
    const ask = await server.operator()
    const body = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
    await ask(`/machines/${macOf(1)}`, asJson(body, 'PUT'))
    await server.request(`/pxe/${macOf(1)}`)
    await report(server, 1, { bytes_written: 7 })
    for (const by of told.split(' ')) {
      const answer =
        by === 'progress'
          ? report(server, 1, { phase: 'failed', reason: 'disk gone' })
          : server.request(
              `/pxe/${macOf(1)}/status`,
              asJson({ status: 'failed', reason: 'disk gone' }),
            )
      assert.is((await answer).status, 204, told)
    }
    const once = { runs: [runIdOf(1)], counted: '1' }
    assert.equal(await recordOf(server, 'machine.flash_failed', 'failed'), once, told)
  }
})

test('so it is where nothing was planned or offered, and a later failure is another one', async () => {
  const told = asJson({ status: 'failed', reason: 'disk gone' })
  for (const first of ['progress', 'status']) {
    let at = Date.now()
    await using server = await createTestServer({ now: () => new Date(at) })
    const ask = await server.operator()
    const fail = () => server.request(`/pxe/${macOf(1)}/status`, told)
    await ask(`/machines/${macOf(1)}`, asJson({ boot_mode: 'ipxe-exit' }, 'PUT'))
    await report(server, 1, { bytes_written: 7 })
    if (first === 'progress') await report(server, 1, { phase: 'failed', reason: 'disk gone' })
    else await fail()
    at += 600_000
    await fail()
    const once = { runs: [runIdOf(1)], counted: '1' }
    assert.equal(await recordOf(server, 'machine.flash_failed', 'failed'), once, first)
    at += 3_600_000
    await fail()
    const { length } = await server.journal.list({ kind: 'machine.flash_failed', limit: 9 })
    assert.is(length, 2)
  }
})

test('a page gets the bars of the machines that it shows', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (const n of [1, 2]) {
    await server.request(`/pxe/${macOf(n)}`)
    await report(server, n)
  }
  const events = readEvents(await ask(`/events/machines?q=${macOf(2)}`))
  await events.next()
  await report(server, 1, { bytes_written: 7 })
  await report(server, 2, { bytes_written: 8 })
  const bars = await events.until(({ name }) => name === 'runs-update')
  assert.is(bars?.data, `<span id="b-${macOf(2)}">write 8</span>`)
  await events.close()
})

test('a page hears nothing while the bars that it shows stay as they are', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (const n of [1, 2]) {
    await server.request(`/pxe/${macOf(n)}`)
    await report(server, n)
  }
  const all = readEvents(await ask('/events/machines'))
  const one = readEvents(await ask(`/events/machines?q=${macOf(2)}`))
  await one.next()
  for (const bytes_written of [1, 2]) {
    await report(server, 1, { bytes_written })
    await all.until(({ data }) => data.includes(`write ${bytes_written}<`))
    // Whoever has just come gets what there is.
    if (bytes_written === 1) assert.match((await one.next())?.data ?? '', 'write 0')
  }
  await report(server, 2, { bytes_written: 8 })
  assert.match((await one.next())?.data ?? '', 'write 8')
  await all.close()
  await one.close()
})

test('a page without rows can ask for all bars', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await server.request(`/pxe/${macOf(1)}`)
  await report(server, 1)
  const events = readEvents(await ask('/events/machines?q=nothing&bars=all'))
  assert.is((await events.next())?.data, '')
  await report(server, 1, { bytes_written: 7 })
  const bars = await events.until(({ name }) => name === 'runs-update')
  assert.is(bars?.data, `<span id="b-${macOf(1)}">write 7</span>`)
  await events.close()
})

test('500 boxes post at once, twice and out of order: no last state is lost', async () => {
  const boxes = Array.from({ length: 500 }, (_, n) => n + 1)
  await using server = await createTestServer({
    env: { FLASHER_PXE_DISCOVERY_PER_MINUTE: '1000' },
  })
  const ask = await server.operator()
  await Promise.all(boxes.map((n) => server.request(`/pxe/${macOf(n)}`)))
  const events = readEvents(await ask('/events/machines'))
  const flash = async (n: number) => {
    const run = runIdOf(n)
    await report(server, n, { run, phase: 'started' })
    const total_bytes = 1000
    const posts = [100, 300, 200, 900, 400].map((bytes_written) =>
      report(server, n, { run, bytes_written, total_bytes }),
    )
    await Promise.all(posts)
    const last = n % 5 === 0 ? 'failed' : 'done'
    const ends = [1, 2].map(() =>
      report(server, n, { run, phase: last, bytes_written: 1000, total_bytes }),
    )
    await Promise.all([...ends, report(server, n, { run, bytes_written: 950, total_bytes })])
  }
  await Promise.all(boxes.map(flash))
  assert.is(server.runs.listRunning().length, 0)
  assert.is(server.runs.count({ result: 'done' }), 400)
  assert.is(server.runs.count({ result: 'failed' }), 100)
  for (const n of boxes) {
    assert.is(server.runs.find(macOf(n), runIdOf(n))?.bytes_written, 1000, `box ${n}`)
  }
  await events.close()
})

test.run()
