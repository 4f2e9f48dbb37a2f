import { copyFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openSession } from '#fleet/cluster/postgres.ts'
import { TIMES } from '#fleet/cluster/rules/lease.ts'
import { readLease, takeLease } from '#fleet/cluster/tables.ts'
import type { Database } from '#fleet/state/database.ts'
import { lendDatabases, openWire } from '#test/support/cluster/postgres.ts'
import { openFreshMember, openMember, untilSaid } from '#test/support/cluster/members.ts'
import { until } from '#test/support/cluster/servers.ts'
import {
  AT,
  createStateFolder,
  faultOf,
  machineOf,
  macOf,
  noteOf,
} from '#test/support/server/state.ts'

const test = suite('cluster')
const postgres = lendDatabases(test)

const TABLES = [
  'machines',
  'hardware',
  'settings',
  'templates',
  'boot_entries',
  'tokens',
  'people',
  'events',
  'runs',
  'run_logs',
]
const dump = ({ sql }: Database) =>
  TABLES.map((table) => [table, sql.all(`SELECT * FROM ${table} ORDER BY 1, 2`)])
const macsIn = async (name: string) =>
  (await postgres.query(name, 'SELECT mac FROM flasher.machines ORDER BY mac')).map(
    (row) => row['mac'],
  )

/** Something in most tables, rows that went again among them. */
async function fill(state: Awaited<ReturnType<typeof openFreshMember>>) {
  const { machines, journal, store, tokens, people } = state
  for (const n of [1, 2, 3]) await machines.commit(macOf(n), null, machineOf(n))
  await machines.saveHardware(macOf(1), '{"id":"x\\u0000"}', AT)
  await machines.remove(macOf(2))
  await store.save({ 'backup.cadence': 'daily', 'backup.enabled': 'true' })
  await store.save({ 'backup.enabled': null })
  await journal.record(noteOf({ details: { serial: 'A\u0000\ud800' } }))
  await tokens.create({ name: 't', scopes: ['read'], expires_at: null }, 10)
  const added = await people.add({ name: 'anna', role: 'operate', labels: null }, 'a hash')
  assert.ok(added.ok)
  await people.setRights(added.value.id, { role: 'look' })
}

test('a change is in the database, then in state.db, and a server without a file reads all of it', async () => {
  const name = await postgres.create()
  let before: unknown
  {
    await using first = await openFreshMember(postgres.urlOf(name))
    await fill(first)
    assert.equal(await macsIn(name), [macOf(1), macOf(3)])
    before = dump(first.database)
  }
  await using second = await openFreshMember(postgres.urlOf(name))
  assert.equal(dump(second.database), before)
  assert.is(second.machines.peek(macOf(3))?.mac, macOf(3))
})

test('a copy of state.db from before reads what has changed since, also what was removed', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using old = await createStateFolder()
  await using folder = await createStateFolder()
  {
    await using member = await openMember(folder, url)
    await member.machines.commit(macOf(2), null, machineOf(2))
    await member.machines.commit(macOf(9), null, machineOf(9))
  }
  copyFileSync(folder.path, old.path)
  let after: unknown
  {
    await using member = await openMember(folder, url)
    await member.machines.remove(macOf(9))
    await member.machines.commit(macOf(4), null, machineOf(4))
    after = dump(member.database)
  }
  await using late = await openMember(old, url)
  assert.equal(dump(late.database), after)
})

test('a unit that the database refuses fails alone, and one that throws is undone alone', async () => {
  const name = await postgres.create()
  await using member = await openFreshMember(postgres.urlOf(name))
  const { database, machines } = member
  const save = (key: string, value: string) =>
    database.write((sql) =>
      sql.run('INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)', key, value, AT),
    )
  const outcomes = await Promise.allSettled([
    save('a', '1'),
    save('b', 'hostile\0'),
    database.write(() => {
      throw new Error('thought better of it')
    }),
    save('a', 'twice'),
    machines.commit(macOf(5), null, machineOf(5)),
  ])
  assert.equal(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected', 'rejected', 'fulfilled'],
  )
  assert.equal(await postgres.query(name, 'SELECT name FROM flasher.settings'), [{ name: 'a' }])
  assert.equal(await macsIn(name), [macOf(5)])
})

test('units of one group that change the same row are all done, in their order', async () => {
  const name = await postgres.create()
  await using member = await openFreshMember(postgres.urlOf(name))
  const { store, machines } = member
  await store.save({ a: '0' })
  await machines.commit(macOf(1), null, machineOf(1))
  await Promise.all([
    store.save({ a: '1' }),
    machines.update(macOf(1), (before) => ({ ...(before ?? machineOf(1)), name: 'first' })),
    store.save({ a: '2' }),
    machines.update(macOf(1), (before) => ({
      ...(before ?? machineOf(1)),
      name: `${before?.name} and second`,
    })),
  ])
  assert.equal(await postgres.query(name, 'SELECT name, value FROM flasher.settings'), [
    { name: 'a', value: '2' },
  ])
  assert.is(machines.peek(macOf(1))?.name, 'first and second')
})

test('nobody reads what is not durable yet', async () => {
  const name = await postgres.create()
  await using wire = await openWire(postgres, name)
  await using member = await openFreshMember(wire.url)
  wire.hold()
  const stored = member.machines.commit(macOf(1), null, machineOf(1))
  await sleep(100)
  assert.is(member.machines.peek(macOf(1)), null)
  assert.is(member.database.sql.get('SELECT mac FROM machines'), null)
  wire.mend()
  assert.is(await stored, true)
  assert.is(member.machines.peek(macOf(1))?.mac, macOf(1))
})

test('a connection that is lost at any point of a group loses nothing and does nothing twice', async () => {
  const name = await postgres.create()
  await using wire = await openWire(postgres, name)
  await using member = await openFreshMember(wire.url)
  const acknowledged: string[] = []
  for (let point = 0; point < 24; point += 1) {
    let passed = 0
    // At odd points the answer is lost, at even ones the question.
    const side = point % 2 === 0 ? 'client' : 'server'
    wire.onBytes((_, from) => from === side && (passed += 1) === Math.floor(point / 2) + 1)
    const macs = [macOf(point * 2 + 1), macOf(point * 2 + 2)]
    const writes = macs.map((mac, at) =>
      member.machines.commit(mac, null, machineOf(point * 2 + 1 + at)),
    )
    assert.equal(await Promise.all(writes), [true, true])
    acknowledged.push(...macs)
  }
  wire.onBytes(() => false)
  assert.equal(await macsIn(name), acknowledged.toSorted())
  const [lease] = await postgres.query(name, 'SELECT seq::int FROM flasher.lease')
  const [log] = await postgres.query(name, 'SELECT count(*)::int AS n FROM flasher.change')
  assert.is(Number(log?.['n']), Number(lease?.['seq']) + 1)
  assert.equal(member.ended, [])
})

test('a leader that is stopped at any of 100 points of its groups appends nothing once another one leads', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  for (let point = 0; point < 100; point += 1) {
    await using wire = await openWire(postgres, name)
    await using member = await openFreshMember(wire.url)
    await using other = await openSession(url)
    let passed = 0
    const stopped = Promise.withResolvers<void>()
    wire.onBytes(() => {
      if ((passed += 1) === (point % 12) + 1) {
        wire.hold()
        stopped.resolve()
      }
      return false
    })
    const macs = Array.from({ length: 6 }, (_, at) => macOf(point * 6 + at))
    const before = await macsIn(name)
    const writes = macs.map(async (mac, at) => {
      // They are not all in one group.
      await sleep(at % 3)
      return await member.machines.commit(mac, null, machineOf(point * 6 + at))
    })
    const outcomes = Promise.allSettled(writes)
    await Promise.race([stopped.promise, outcomes])
    const next = { name: 'b', release: '', url: '' }
    // Where it goes on, a beat may come between.
    while (!(await takeLease(other, await readLease(other), `term-${point}`, next)));
    const atTakeover = await macsIn(name)
    wire.onBytes(() => false)
    wire.mend()
    const settled = await outcomes
    const now = await macsIn(name)
    assert.equal(now, atTakeover, `point ${point}: something was appended after the takeover`)
    for (const [at, outcome] of settled.entries()) {
      if (outcome.status === 'fulfilled') assert.ok(now.includes(macs[at]), `point ${point}`)
      else assert.is((await faultOf(Promise.reject(outcome.reason))).code, 'no-leader')
    }
    assert.ok(now.length - before.length <= macs.length)
  }
})

test('a clean stop hands over at once; who stands by has every change', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  const first = await openFreshMember(url)
  await first.machines.commit(macOf(1), null, machineOf(1))
  const begun = performance.now()
  const waiting = openFreshMember(url, { patience: 'wait' })
  await sleep(700)
  await first.machines.commit(macOf(2), null, machineOf(2))
  const stopped = performance.now()
  await first[Symbol.asyncDispose]()
  await using second = await waiting
  assert.ok(performance.now() - stopped < 2000, 'a clean stop hands over within 2 s')
  assert.ok(performance.now() - begun > 700)
  assert.is(second.machines.peek(macOf(2))?.mac, macOf(2))
  assert.match(second.said.join('\n'), 'standing by: a leads since')
})

test('a command is refused while another server leads', async () => {
  const name = await postgres.create()
  await using _ = await openFreshMember(postgres.urlOf(name))
  const fault = await faultOf(openFreshMember(postgres.urlOf(name)))
  assert.is(fault.code, 'conflict')
  assert.match(fault.message, 'a leads this fleet')
})

test('what is seen of machines is stored within two seconds, without a change of the log', async () => {
  const name = await postgres.create()
  await using member = await openFreshMember(postgres.urlOf(name))
  await member.machines.commit(macOf(1), null, machineOf(1))
  const count = () => postgres.query(name, 'SELECT count(*)::int AS n FROM flasher.change')
  const before = await count()
  member.machines.see(macOf(1), { at: '2026-11-22T00:00:00.000Z', ip: '192.0.2.1' })
  for (let tries = 0; tries < 40; tries += 1) {
    const [row] = await postgres.query(name, 'SELECT last_seen_ip FROM flasher.machines')
    if (row?.['last_seen_ip'] === '192.0.2.1') break
    await sleep(100)
  }
  const [row] = await postgres.query(
    name,
    'SELECT last_seen_at, last_seen_ip FROM flasher.machines',
  )
  assert.equal(row, { last_seen_at: '2026-11-22T00:00:00.000Z', last_seen_ip: '192.0.2.1' })
  assert.equal(await count(), before)
})

test('a server that takes over knows when machines were seen last', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  const first = await openFreshMember(url)
  await first.machines.commit(macOf(1), null, machineOf(1))
  const waiting = openFreshMember(url, { patience: 'wait' })
  await sleep(1000)
  first.machines.see(macOf(1), { at: '2026-11-22T00:00:00.000Z', ip: '192.0.2.1' })
  await first[Symbol.asyncDispose]()
  await using second = await waiting
  const machine = second.machines.peek(macOf(1))
  assert.is(machine?.last_seen_at, '2026-11-22T00:00:00.000Z')
  assert.is(machine?.last_seen_ip, '192.0.2.1')
})

test('another database, an older one and a state with machines of its own are refused with a hint', async () => {
  const [name, elsewhere] = [await postgres.create(), await postgres.create()]
  await using folder = await createStateFolder()
  {
    await using member = await openMember(folder, postgres.urlOf(name))
    await member.machines.commit(macOf(1), null, machineOf(1))
    await member.machines.commit(macOf(2), null, machineOf(2))
  }
  const other = await faultOf(openMember(folder, postgres.urlOf(elsewhere)))
  assert.match(other.message, 'belongs to another database')
  assert.is(other.code, 'input-invalid')

  await postgres.query(
    name,
    'UPDATE flasher.lease SET seq = seq - 1; DELETE FROM flasher.change WHERE seq > 1',
  )
  const older = await faultOf(openMember(folder, postgres.urlOf(name)))
  assert.match(older.message, 'older than this state')
  assert.match(older.hint ?? '', 'accept-older')

  // Back, and on from there: other changes under the same numbers.
  await postgres.query(
    name,
    "UPDATE flasher.lease SET seq = seq + 1; INSERT INTO flasher.change (seq, id, keys) VALUES (2, 'x', '{}')",
  )
  assert.match((await faultOf(openMember(folder, postgres.urlOf(name)))).message, 'older than')

  await using alone = await createStateFolder()
  {
    await using state = await alone.open()
    await state.machines.commit(macOf(7), null, machineOf(7))
  }
  const own = await faultOf(openMember(alone, postgres.urlOf(elsewhere)))
  assert.match(own.hint ?? '', 'database import')
})

test('a leader whose database went back stops, and says so', async () => {
  const name = await postgres.create()
  await using wire = await openWire(postgres, name)
  await using member = await openFreshMember(wire.url)
  await member.machines.commit(macOf(1), null, machineOf(1))
  await member.machines.commit(macOf(2), null, machineOf(2))
  wire.sever()
  await postgres.query(
    name,
    'UPDATE flasher.lease SET seq = seq - 1; DELETE FROM flasher.change WHERE seq > 1',
  )
  const write = member.machines.commit(macOf(3), null, machineOf(3))
  wire.mend()
  assert.match(
    (await faultOf(Promise.resolve(write))).message,
    'the database was replaced by an older one',
  )
  assert.is(member.ended.length, 1)
})

test('the database away for a moment: changes wait, and are stored then', async () => {
  const name = await postgres.create()
  await using wire = await openWire(postgres, name)
  await using member = await openFreshMember(wire.url)
  wire.sever()
  const write = member.machines.commit(macOf(1), null, machineOf(1))
  await untilSaid(member, 'changes wait')
  assert.is(member.machines.peek(macOf(1)), null)
  wire.mend()
  assert.is(await write, true)
  assert.match(member.said.join('\n'), 'answers again')
})

test('rows that take too long fail alone, and hold nobody else up', async () => {
  const name = await postgres.create()
  const times = { ...TIMES, statementMs: 1500, answerMs: 3000 }
  await using member = await openFreshMember(postgres.urlOf(name), { times })
  const { store, machines } = member
  await store.save({ slow: '1' })
  // Longer than the group, and the row alone after it.
  const lock = `BEGIN; SELECT 1 FROM flasher.settings FOR UPDATE; SELECT pg_sleep(6); COMMIT`
  const locked = postgres.query(name, lock)
  const sleeping =
    "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
  await until(async () => (await postgres.query(name, sleeping)).length === 1)
  const [slow, other] = await Promise.allSettled([
    store.save({ slow: '2' }),
    machines.commit(macOf(1), null, machineOf(1)),
  ])
  assert.is(other.status, 'fulfilled')
  assert.is(slow.status, 'rejected')
  assert.is(store.list()['slow'], '1')
  await locked
  await store.save({ slow: '3' })
  assert.equal(await postgres.query(name, 'SELECT value FROM flasher.settings'), [{ value: '3' }])
  assert.equal(member.ended, [])
})

test('what is read at once may take longer than a group', async () => {
  const times = { statementMs: 1000, answerMs: 1500 }
  await using session = await openSession(postgres.urlOf(await postgres.create()), times)
  await session.transact('', () => session.query('SELECT pg_sleep(2)'))
})

test('a backup that cannot be used leaves everything as it was', async () => {
  const name = await postgres.create()
  await using member = await openFreshMember(postgres.urlOf(name))
  await member.machines.commit(macOf(1), null, machineOf(1))
  const path = `${member.folder.dir}/other.db`
  writeFileSync(path, 'this is no database'.repeat(500))
  await faultOf(member.database.replaceWith(path))
  assert.equal(member.ended, [])
  assert.is(await member.machines.commit(macOf(2), null, machineOf(2)), true)
  assert.equal(await macsIn(name), [macOf(1), macOf(2)])
})

test('a slow database is slow, and nothing else', async () => {
  const name = await postgres.create()
  await using wire = await openWire(postgres, name)
  await using member = await openFreshMember(wire.url)
  wire.slow(2000)
  assert.is(await member.machines.commit(macOf(1), null, machineOf(1)), true)
  wire.slow(0)
  assert.equal(member.ended, [])
})

test.run()
