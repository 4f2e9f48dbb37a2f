import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MAX_LOG_BYTES, type ProgressPost } from '#engine/inventory/rules/run.ts'
import { createRunLogs, createRuns, type Runs } from '#fleet/run/runs.ts'
import { originOf, postOf, runIdOf } from '#test/support/server/runs.ts'
import {
  createStateFolder,
  machineOf,
  macOf,
  type StateServices,
} from '#test/support/server/state.ts'

const test = suite('runs')
const MAC = macOf(1)

/** A clock that stands still until it is set on. */
function createClock() {
  let at = Date.UTC(2026, 10, 21)
  return {
    now: () => new Date(at),
    iso: () => new Date(at).toISOString(),
    pass(seconds: number) {
      at += seconds * 1000
    },
  }
}

async function take(runs: Runs, fields: Partial<ProgressPost> = {}, mac = MAC) {
  const taken = await runs.take(postOf(fields), originOf(mac))
  if (!taken.ok) throw new Error(taken.refusal)
  return taken.value
}

const countRows = ({ database }: StateServices) =>
  Number(database.sql.get('SELECT count(*) AS c FROM runs')?.['c'])

test('figures are live in memory, phases are on disk', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  const { runs } = state
  assert.is((await take(runs, { phase: 'started' })).isNew, true)
  const written = await take(runs, { bytes_written: 10, total_bytes: 100 })
  assert.equal([written.isNew, written.isTurn], [false, true])
  const further = await take(runs, { bytes_written: 50, total_bytes: 100 })
  assert.is(further.isTurn, false)
  assert.is(runs.findRunning(MAC)?.bytes_written, 50)
  assert.is(runs.list({ limit: 10 })[0]?.run.bytes_written, 50)
  const stored = String(state.database.sql.get('SELECT record FROM runs')?.['record'])
  assert.is(JSON.parse(stored).bytes_written, 10)
  const done = await take(runs, { phase: 'done', bytes_written: 100 })
  assert.is(done.hasEnded, true)
  assert.is(runs.findRunning(MAC), null)
  assert.is(runs.find(MAC, runIdOf(1))?.result, 'done')
  assert.is((await take(runs, { phase: 'done', bytes_written: 100 })).hasEnded, false)
  assert.is(countRows(state), 1)
})

test('a flash that failed counts as soon as it has ended, with those that were listed before', async () => {
  await using folder = await createStateFolder()
  const clock = createClock()
  await using state = await folder.open({ now: clock.now })
  const { runs } = state
  const since = clock.iso()
  const list = () => runs.listEndedFlashes(since).map(({ isDone }) => isDone)
  await take(runs, { phase: 'done' })
  assert.equal(list(), [true])
  await take(runs, { run: runIdOf(2), phase: 'started' })
  assert.equal(list(), [true], 'it goes on')
  await take(runs, { run: runIdOf(2), phase: 'failed', reason: 'no' })
  assert.equal(list().toSorted(), [false, true])
  await runs.remove(MAC, runIdOf(1))
  assert.equal(list(), [false])
})

test('what went on goes on after a restart, and what ended stays ended', async () => {
  await using folder = await createStateFolder()
  {
    await using state = await folder.open()
    await take(state.runs, { phase: 'started' })
    await take(state.runs, { bytes_written: 70 })
    await take(state.runs, { bytes_written: 80 })
    await take(state.runs, { phase: 'failed', run: runIdOf(2), reason: 'no' }, macOf(2))
  }
  await using state = await folder.open()
  assert.is(state.runs.findRunning(MAC)?.bytes_written, 80, 'an orderly end stores figures too')
  assert.is(state.runs.findRunning(macOf(2)), null)
  const late = await take(state.runs, { phase: 'write', run: runIdOf(2) }, macOf(2))
  assert.is(late.run.result, 'failed')
  assert.is((await take(state.runs, { bytes_written: 90 })).run.bytes_written, 90)
})

test('a machine that begins anew leaves its run as lost, which takes its true end', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  await take(state.runs, { bytes_written: 5 })
  const second = await take(state.runs, { run: runIdOf(2), phase: 'started' })
  assert.is(second.lost?.id, runIdOf(1))
  assert.is(state.runs.find(MAC, runIdOf(1))?.result, 'lost')
  await take(state.runs, { bytes_written: 9 })
  assert.is(state.runs.findRunning(MAC)?.id, runIdOf(2), 'a late post opens nothing')
  await take(state.runs, { phase: 'done', bytes_written: 9 })
  assert.is(state.runs.find(MAC, runIdOf(1))?.result, 'done')
  assert.is(state.runs.findRunning(MAC)?.id, runIdOf(2))
})

test('an end without a name', async () => {
  await using folder = await createStateFolder()
  const clock = createClock()
  await using state = await folder.open({ now: clock.now })
  const { runs } = state
  const end = { result: 'done', reason: null, plannedAt: null, startedBefore: null } as const
  assert.is(await runs.end(originOf(MAC), end), null, 'no plan, no run')

  const plannedAt = clock.iso()
  clock.pass(60)
  const silent = await runs.end(originOf(MAC), { ...end, plannedAt })
  assert.equal([silent?.run.reported, silent?.run.started_at], [false, plannedAt])
  assert.is((await runs.end(originOf(MAC), { ...end, plannedAt }))?.hasEnded, false)
  assert.is(countRows(state), 1)

  clock.pass(60)
  const again = clock.iso()
  clock.pass(5)
  await take(runs, { bytes_written: 7 })
  const named = await runs.end(originOf(MAC), { ...end, plannedAt: again })
  assert.equal([named?.run.id, named?.hasEnded, named?.run.bytes_written], [runIdOf(1), true, 7])
  const told = await take(runs, { phase: 'done', bytes_written: 9, verified: true })
  assert.equal([told.hasEnded, told.run.verified, told.run.bytes_written], [false, true, 9])
  assert.is(countRows(state), 2)
})

test('a run without news is marked, comes back with the next post, and is given up after a day', async () => {
  await using folder = await createStateFolder()
  const clock = createClock()
  await using state = await folder.open({ now: clock.now })
  const { runs } = state
  await take(runs, { bytes_written: 5 })
  clock.pass(29)
  await runs.sweep()
  assert.is(runs.findRunning(MAC)?.stalled, false)
  clock.pass(2)
  await runs.sweep()
  assert.is(runs.findRunning(MAC)?.stalled, true)
  assert.is(runs.list({ open: true, stalled: true, limit: 9 }).length, 1)
  assert.is(runs.marks(), 1)
  const heard = await take(runs, { bytes_written: 6 })
  assert.equal([heard.run.stalled, heard.isTurn], [false, true])
  clock.pass(25 * 3600)
  await runs.sweep()
  assert.is(runs.findRunning(MAC), null)
  assert.is(runs.find(MAC, runIdOf(1))?.result, 'lost')
})

test('after a restart it listens for as long as ever before it marks', async () => {
  await using folder = await createStateFolder()
  const clock = createClock()
  {
    await using state = await folder.open({ now: clock.now })
    await take(state.runs, { bytes_written: 5 })
  }
  clock.pass(600)
  await using state = await folder.open({ now: clock.now })
  await state.runs.sweep()
  assert.is(state.runs.findRunning(MAC)?.stalled, false)
  clock.pass(31)
  await state.runs.sweep()
  assert.is(state.runs.findRunning(MAC)?.stalled, true)
})

test('10,000 run ids of one box are a few runs', async () => {
  await using folder = await createStateFolder()
  const clock = createClock()
  await using state = await folder.open({ now: clock.now })
  let taken = 0
  for (let n = 0; n < 10_000; n += 1) {
    const post = await state.runs.take(postOf({ run: runIdOf(n) }), originOf(MAC))
    if (post.ok) taken += 1
  }
  assert.is(taken, 20)
  assert.is(countRows(state), 20)
  assert.is(state.runs.listRunning().length, 1)
  clock.pass(60)
  assert.ok((await state.runs.take(postOf({ run: runIdOf(99_999) }), originOf(MAC))).ok)
})

test('one machine keeps 1,000 runs at most, the fleet as many as it shall', async () => {
  await using folder = await createStateFolder()
  const clock = createClock()
  await using state = await folder.open({ now: clock.now })
  let count = 5000
  const runs = createRuns(state.database, {
    now: clock.now,
    elapsed: () => clock.now().getTime(),
    retention: () => ({ count, days: 10 }),
  })
  for (let n = 0; n < 1010; n += 1) {
    clock.pass(30)
    await take(runs, { run: runIdOf(n), phase: 'done' })
  }
  assert.is(countRows(state), 1000)
  count = 300
  await runs.prune()
  assert.is(countRows(state), 300)
  clock.pass(11 * 24 * 3600)
  await take(runs, { run: runIdOf(5000), phase: 'write' })
  await runs.prune()
  assert.equal(
    runs.list({ limit: 10 }).map(({ run }) => run.id),
    [runIdOf(5000)],
  )
})

test('filters find what they name', async () => {
  await using folder = await createStateFolder()
  const clock = createClock()
  await using state = await folder.open({ now: clock.now })
  const { runs } = state
  for (let n = 0; n < 6; n += 1) {
    clock.pass(60)
    const image = { name: n % 2 === 0 ? 'debian.img.zst' : '100%_real.img', ref: 'a'.repeat(64) }
    const disk = { path: '/dev/sda', serial: `S-${n}`, model: 'SSD 980' }
    const phase = n < 4 ? 'done' : 'write'
    await take(runs, { run: runIdOf(n), phase, image, disk }, macOf(n))
  }
  const find = (filter: object) =>
    runs.list({ limit: 100, ...filter }).map(({ run }) => Number(run.id.slice(4)))
  assert.equal(find({}), [5, 4, 3, 2, 1, 0])
  assert.equal(find({ result: 'done', image: 'debian.img.zst' }), [2, 0])
  assert.equal(find({ image: 'a'.repeat(64), serial: 'S-3' }), [3])
  assert.equal(find({ text: 'ssd 100%_' }), [5, 3, 1])
  assert.equal(find({ text: 'ssd 100x_' }), [])
  assert.equal(find({ open: true }), [5, 4])
  assert.equal(find({ mac: macOf(2) }), [2])
  assert.equal(find({ before: 3 }), [1, 0])
  assert.equal(find({ since: runs.find(macOf(4), runIdOf(4))?.started_at }), [5, 4])
  assert.is(runs.count({ result: 'done' }), 4)
})

test('an upgrade takes the history along', async () => {
  await using folder = await createStateFolder()
  {
    await using state = await folder.open()
    await take(state.runs, { phase: 'done', bytes_written: 3 })
    await state.runs.saveLog(MAC, runIdOf(1), Buffer.from('what happened'))
    await take(state.runs, { bytes_written: 4 }, macOf(2))
  }
  await using state = await folder.open({ release: '9.9.9' })
  assert.ok(state.database.reset)
  assert.is(state.runs.find(MAC, runIdOf(1))?.bytes_written, 3)
  assert.is(await state.runs.findLog(MAC, runIdOf(1)), 'what happened')
  assert.is(state.runs.findRunning(macOf(2))?.bytes_written, 4)
})

test('a database from before there were runs gets them, and keeps its machines', async () => {
  await using folder = await createStateFolder()
  {
    await using state = await folder.open()
    await state.machines.update(MAC, () => machineOf(1, { labels: ['kept'] }))
    await state.database.write((sql) => {
      for (const text of ['DROP TABLE runs', 'DROP TABLE run_logs']) sql.run(text)
      sql.run('UPDATE flasher_state SET "schema" = 1')
    })
  }
  await using state = await folder.open()
  assert.equal((await state.machines.find(MAC))?.labels, ['kept'])
  assert.is((await take(state.runs, { phase: 'done' })).run.result, 'done')
})

test('a final post that could not be stored is not acknowledged, and stored when it is sent again', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  await take(state.runs, { bytes_written: 1 })
  await state.database.write((sql) => sql.run('ALTER TABLE runs RENAME TO away'))
  let isRefused = false
  await take(state.runs, { phase: 'done' }).catch(() => {
    isRefused = true
  })
  assert.ok(isRefused)
  await state.database.write((sql) => sql.run('ALTER TABLE away RENAME TO runs'))
  assert.is((await take(state.runs, { phase: 'done' })).run.result, 'done')
  const row = state.database.sql.get('SELECT result FROM runs')
  assert.is(row?.['result'], 'done')
  assert.is(state.runs.findRunning(MAC), null)
})

async function takeLogs(runs: Runs, fields: Partial<ProgressPost>, mac = MAC) {
  assert.ok((await runs.take(postOf(fields), originOf(mac))).ok)
}

test('the tail of a log is kept, packed, and goes with its run', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  const { runs } = state
  assert.is(await runs.saveLog(MAC, runIdOf(1), Buffer.from('x')), false)
  await takeLogs(runs, { phase: 'failed' })
  const text = `${'a'.repeat(MAX_LOG_BYTES)}the end`
  assert.is(await runs.saveLog(MAC, runIdOf(1), Buffer.from(text)), true)
  const kept = await runs.findLog(MAC, runIdOf(1))
  assert.is(kept?.length, MAX_LOG_BYTES)
  assert.ok(kept?.endsWith('the end'))
  assert.is(runs.find(MAC, runIdOf(1))?.has_log, true)
  const size = Number(state.database.sql.get('SELECT size FROM run_logs')?.['size'])
  assert.ok(size < 2000, `${size} bytes`)

  await state.database.write((sql) => sql.run('DELETE FROM runs'))
  await runs.prune()
  assert.is(await runs.findLog(MAC, runIdOf(1)), null)
})

test('all logs together stay within their bytes, the newest of them', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  const logs = createRunLogs(state.database, 500)
  for (let n = 1; n <= 5; n += 1) {
    await takeLogs(state.runs, { phase: 'done', run: runIdOf(n) }, macOf(n))
    const noise = Buffer.from(Array.from({ length: 100 }, (_, at) => (at * n * 97) % 251))
    await logs.save(macOf(n), runIdOf(n), noise, `2026-01-0${n}T00:00:00.000Z`)
  }
  await logs.prune()
  const left = await Promise.all(
    [1, 2, 3, 4, 5].map(async (n) => (await logs.find(macOf(n), runIdOf(n))) !== null),
  )
  assert.is(left[4], true)
  assert.is(left[0], false)
})

test.run()
