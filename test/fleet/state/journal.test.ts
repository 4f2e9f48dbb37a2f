import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createJournal, type EventFilter } from '#fleet/state/journal.ts'
import { createStateFolder, macOf, noteOf, type StateServices } from '#test/support/server/state.ts'

const test = suite('journal')
const START = Date.parse('2026-11-21T06:55:53.000Z')

/** A journal on a clock that the test sets. */
async function createFixture() {
  const folder = await createStateFolder()
  const clock = { at: START }
  const now = () => new Date(clock.at)
  const state = await folder.open({ now })
  return {
    ...state,
    clock,
    now,
    async [Symbol.asyncDispose]() {
      await state[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}
const found = async ({ journal }: Pick<StateServices, 'journal'>, filter: Partial<EventFilter>) =>
  (await journal.list({ limit: 50, ...filter })).map(({ id }) => id)

test('keeps all fields, newest first, numbered', async () => {
  await using fixture = await createFixture()
  await fixture.journal.record(noteOf({ details: { a: [1, 'ü'] }, summary: 'first' }))
  fixture.clock.at += 1500
  await fixture.journal.record(noteOf({ actor: 'token:ci', subject_id: null, source_ip: null }))
  const events = await fixture.journal.list({ limit: 50 })
  assert.equal(events, [
    {
      ...noteOf({ actor: 'token:ci', subject_id: null, source_ip: null }),
      id: 2,
      ts: '2026-11-21T06:55:54.500Z',
      acknowledged: false,
    },
    {
      ...noteOf({ details: { a: [1, 'ü'] }, summary: 'first' }),
      id: 1,
      ts: '2026-11-21T06:55:53.000Z',
      acknowledged: false,
    },
  ])
})

const FILTERS: readonly (readonly [Partial<EventFilter>, readonly number[]])[] = [
  [{}, [5, 4, 3, 2, 1]],
  [{ kind: 'backup.failed' }, [4]],
  [{ subject_kind: 'auth' }, [3]],
  [{ subject_id: macOf(2) }, [2]],
  [{ actor: 'system' }, [5, 4]],
  [{ source_ip: '192.0.2.99' }, [3]],
  [{ failed: true }, [4, 3]],
  [{ unacknowledged: true }, [5, 4, 3]],
  [{ unacknowledged: true, failed: true, kind: 'backup.failed' }, [4]],
  [{ text: 'NIGHT' }, [4]],
  [{ text: 'night backup' }, [4]],
  [{ text: 'night morning' }, []],
  [{ text: '100%_' }, [2]],
  [{ text: '%' }, [2]],
  [{ text: '   ' }, [5, 4, 3, 2, 1]],
  [{ text: `' OR 1=1 --` }, []],
  [{ before_id: 3 }, [2, 1]],
  [{ limit: 2 }, [5, 4]],
  [{ limit: 2, before_id: 4 }, [3, 2]],
  [{ limit: 0 }, [5]],
]
test('filters and pages', async () => {
  await using fixture = await createFixture()
  await fixture.journal.record(noteOf())
  await fixture.journal.record(noteOf({ subject_id: macOf(2), summary: 'it is 100%_done' }))
  await fixture.journal.record(
    noteOf({ kind: 'auth.login.failed', subject_kind: 'auth', source_ip: '192.0.2.99' }),
  )
  const backup = noteOf({ subject_kind: 'backup', actor: 'system', subject_id: 'x' })
  await fixture.journal.record({ ...backup, kind: 'backup.failed', summary: 'The night was short' })
  await fixture.journal.record({
    ...backup,
    kind: 'netboot.loop.suspected',
    subject_kind: 'netboot',
  })
  for (const [filter, ids] of FILTERS) {
    assert.equal(await found(fixture, filter), ids, JSON.stringify(filter))
  }
})

test('alarms are failures, suspicions, resets and a disk that fills up, until they are acknowledged', async () => {
  await using fixture = await createFixture()
  const kinds = [
    'machine.flashed',
    'machine.flash_failed',
    'auth.login.failed',
    'netboot.loop.suspected',
    'system.schema.reset',
    'system.disk.low',
    'machine.failed_over',
  ]
  for (const kind of kinds) await fixture.journal.record(noteOf({ kind }))
  assert.is(await fixture.journal.countAlarms(), 5)
  assert.is(await fixture.journal.acknowledge([2, 3, 99], true), 2)
  assert.is(await fixture.journal.acknowledge([2, 3], true), 2)
  assert.is(await fixture.journal.acknowledge([99], true), 0)
  assert.is(await fixture.journal.countAlarms(), 3)
  assert.equal(await found(fixture, { unacknowledged: true }), [6, 5, 4])
  assert.is(await fixture.journal.acknowledge([2], false), 1)
  assert.is(await fixture.journal.countAlarms(), 4)
})

test('tells listeners, once a change is stored', async () => {
  await using fixture = await createFixture()
  const heard: string[] = []
  fixture.changes.listen(({ topic }) => heard.push(topic))
  await fixture.journal.record(noteOf())
  await fixture.journal.acknowledge([1], true)
  await fixture.journal.acknowledge([99], true)
  assert.equal(heard, ['event', 'event'])
})

test('a flood is counted, and told when it is over', async () => {
  await using fixture = await createFixture()
  const knock = () =>
    fixture.journal.record(noteOf({ kind: 'machine.flashed', actor: 'pxe-client' }))
  for (let n = 0; n < 500; n += 1) await knock()
  assert.is((await found(fixture, { limit: 500 })).length, 3)
  await fixture.journal.record(
    noteOf({ kind: 'machine.flashed', actor: 'pxe-client', subject_id: macOf(2) }),
  )
  assert.is((await found(fixture, {})).length, 4)
  fixture.clock.at += 10_000
  await knock()
  const events = await fixture.journal.list({ limit: 50 })
  assert.is(events.length, 6)
  const counted = events.find(({ details }) => details !== null)
  assert.equal(counted?.details, { repeated: 497 })
  assert.match(counted?.summary ?? '', '(and 497 more like it)')
})

test('counted events are reported when the journal closes at the latest', async () => {
  await using folder = await createStateFolder()
  {
    await using state = await folder.open()
    for (let n = 0; n < 10; n += 1) {
      await state.journal.record(noteOf({ kind: 'auth.login.failed', subject_kind: 'auth' }))
    }
  }
  await using state = await folder.open()
  const [newest, ...others] = await state.journal.list({ limit: 50 })
  assert.equal(newest?.details, { repeated: 7 })
  assert.is(others.length, 3)
})

test('what operators and their scripts do is never counted away', async () => {
  await using fixture = await createFixture()
  for (let n = 0; n < 20; n += 1) {
    await fixture.journal.record(noteOf({ actor: n % 2 === 0 ? 'operator' : 'token:ci' }))
  }
  assert.is((await found(fixture, {})).length, 20)
})

test('a flood of ever new subjects is bounded too', async () => {
  await using fixture = await createFixture()
  const notes = Array.from({ length: 6000 }, (_, n) =>
    noteOf({ kind: 'pxe.client.orphan', actor: 'pxe-client', subject_id: macOf(n) }),
  )
  await Promise.all(notes.map((note) => fixture.journal.record(note)))
  const stored = fixture.database.sql.get('SELECT count(*) AS n FROM events')?.['n']
  assert.is(stored, 4096 + 3)
})

test('long texts and large details are cut', async () => {
  await using fixture = await createFixture()
  await fixture.journal.record(
    noteOf({ summary: 'x'.repeat(9000), details: { a: 'y'.repeat(99_999) } }),
  )
  const [event] = await fixture.journal.list({ limit: 1 })
  assert.is(event?.summary.length, 500)
  assert.equal(event?.details, { truncated: true })
})

test('a summary is for terminals too; details stay as they are', async () => {
  await using fixture = await createFixture()
  await fixture.journal.record(
    noteOf({ summary: 'the disk \u001b[2J\u202e is gone', details: { serial: '\u001b[2J' } }),
  )
  const [event] = await fixture.journal.list({ limit: 1 })
  assert.is(event?.summary, String.raw`the disk \x1b[2J\u202e is gone`)
  assert.equal(event?.details, { serial: '\u001b[2J' })
})

test('retention keeps the newest by count, and none past an age', async () => {
  await using fixture = await createFixture()
  const retention = { count: 1200, days: 30 }
  const journal = createJournal(fixture.database, { now: fixture.now, retention: () => retention })
  const many = (count: number) =>
    Promise.all(Array.from({ length: count }, () => fixture.journal.record(noteOf())))
  await many(700)
  fixture.clock.at += 20 * 86_400_000
  await many(800)
  assert.is(await journal.prune(), 300)
  assert.is(Math.min(...(await found({ journal }, { before_id: 302 }))), 301)
  fixture.clock.at += 11 * 86_400_000
  assert.is(await journal.prune(), 400)
  assert.is(await journal.prune(), 0)
  fixture.clock.at += 30 * 86_400_000
  assert.is(await journal.prune(), 800)
  assert.equal(await found({ journal }, {}), [])
})

test('is pruned by itself while events come in', async () => {
  await using fixture = await createFixture()
  const journal = createJournal(fixture.database, { retention: () => ({ count: 100, days: 1 }) })
  for (let round = 0; round < 11; round += 1) {
    await Promise.all(Array.from({ length: 100 }, () => journal.record(noteOf())))
  }
  await journal.prune()
  await journal.prune()
  assert.is((await found({ journal }, { limit: 500 })).length, 100)
})

test.run()
