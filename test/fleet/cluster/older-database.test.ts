/** A database that was restored from an older backup: nobody leads with it by mistake. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openSession } from '#fleet/cluster/postgres.ts'
import { renderFormerSchema } from '#fleet/cluster/rules/shared-tables.ts'
import { readMembership } from '#fleet/state/membership.ts'
import { SCHEMA } from '#fleet/state/schema.ts'
import { openSqlite } from '#fleet/state/sqlite.ts'
import { openFreshMember, openMember } from '#test/support/cluster/members.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { readBlocks } from '#test/support/docs.ts'
import { createStateFolder, faultOf, machineOf, macOf, noteOf } from '#test/support/server/state.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('older databases')
const postgres = lendDatabases(test)

test('a server that stands by follows, and does not lead once the database went back', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using leader = await openFreshMember(url)
  await leader.machines.commit(macOf(1), null, machineOf(1))
  await using folder = await createStateFolder()
  const waiting = openMember(folder, url, { patience: 'wait' })
  const refused = faultOf(waiting)
  await sleep(1000)
  await leader.machines.commit(macOf(2), null, machineOf(2))
  const file = openSqlite(folder.path)
  for (let tries = 0; tries < 50 && readMembership(file)?.seq !== 2; tries += 1) await sleep(100)
  assert.is(readMembership(file)?.seq, 2)
  assert.equal(
    file.all('SELECT mac FROM machines ORDER BY mac'),
    leader.database.sql.all('SELECT mac FROM machines ORDER BY mac'),
  )
  file.close()
  await postgres.query(
    name,
    'UPDATE flasher.lease SET seq = seq - 1; DELETE FROM flasher.change WHERE seq > 1',
  )
  assert.match((await refused).message, 'older than this state')
})

test('tables from before the row of the live systems get it from the server that joins', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  {
    await using _ = await openFreshMember(url)
  }
  await postgres.query(name, 'DROP TABLE flasher.netboot')
  await using _ = await openFreshMember(url)
  const rows = await postgres.query(name, 'SELECT count(*) AS rows FROM flasher.netboot')
  assert.match(JSON.stringify(rows), '0')
})

test('a server that stands by ends once a newer release has upgraded the tables', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using _ = await openFreshMember(url)
  await using folder = await createStateFolder()
  const readings: number[] = []
  const follow = (lease: { readonly seq: number } | null) => readings.push(lease?.seq ?? -1)
  const refused = faultOf(openMember(folder, url, { patience: 'wait', follow }))
  await waitUntil(
    async () => readings.length > 0,
    () => 'it never stood by',
  )
  await postgres.query(name, 'UPDATE flasher.lease SET "schema" = "schema" + 1')
  assert.match((await refused).message, /of shape \d+ \(release .*this release works with shape/)
})

test('an older database that was accepted is refused again until something is stored in it', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using folder = await createStateFolder()
  {
    await using member = await openMember(folder, url)
    for (const n of [1, 2]) await member.machines.commit(macOf(n), null, machineOf(n))
  }
  await postgres.query(
    name,
    `UPDATE flasher.lease SET seq = seq - 1; DELETE FROM flasher.change WHERE seq > 1;
     DELETE FROM flasher.machines WHERE mac = '${macOf(2)}'`,
  )
  // Ended before it could remove the orders.
  await (await openMember(folder, url, { start: 'accept-older' }))[Symbol.asyncDispose]()
  assert.match((await faultOf(openMember(folder, url))).message, 'older than this state')
  {
    await using member = await openMember(folder, url, { start: 'accept-older' })
    assert.is(member.machines.peek(macOf(2)), null)
    await member.journal.record(noteOf({}))
  }
  await using member = await openMember(folder, url)
  assert.is(member.machines.peek(macOf(1))?.mac, macOf(1))
})

/** As a release before left it: another shape, a column less, and a table that nobody knows any more. */
const makeOlder = async (name: string) => {
  const older = [
    `UPDATE flasher.lease SET "schema" = ${SCHEMA - 1}, release = '0.0.9'`,
    'ALTER TABLE flasher.runs DROP COLUMN serial CASCADE',
    'CREATE TABLE flasher.gone (a text)',
  ]
  for (const text of older) await postgres.query(name, text)
}
const listWaiting = (name: string) =>
  postgres.query(name, 'SELECT pid FROM pg_locks WHERE NOT granted')
const schemasOf = async (name: string) =>
  (
    await postgres.query(
      name,
      `SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'flasher%' ORDER BY 1`,
    )
  ).map((row) => String(row['name']))

test('the former tables are kept under their release, what both know is carried, and everybody reads anew', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using folder = await createStateFolder()
  {
    await using first = await openMember(folder, url)
    for (const n of [1, 2]) await first.machines.commit(macOf(n), null, machineOf(n))
    await first.journal.record(noteOf({ summary: 'before the upgrade' }))
    await first.store.save({ 'backup.cadence': 'daily' })
  }
  const [before] = await postgres.query(name, 'SELECT cluster, seq FROM flasher.lease')
  await makeOlder(name)
  {
    await using upgraded = await openFreshMember(url)
    assert.match(upgraded.said.join('\n'), 'upgraded the database from 0.0.9')
    assert.is((await upgraded.machines.list()).length, 2)
    assert.is(upgraded.store.find('backup.cadence'), 'daily')
    await upgraded.machines.commit(macOf(3), null, machineOf(3))
    const events = upgraded.database.sql.all('SELECT kind, summary FROM events ORDER BY id DESC')
    assert.equal(
      events.map((row) => row['kind']),
      ['system.schema.reset', 'machine.upserted'],
    )
    assert.match(String(events[0]?.['summary']), /^Upgraded from 0\.0\.9 to .*: 2 machines/)
  }
  const [former = '', present] = (await schemasOf(name)).toReversed()
  assert.match(former, /^flasher_0_0_9_\d{8}t\d{6}z$/)
  assert.is(present, 'flasher')
  const kept = await postgres.query(name, `SELECT summary FROM ${former}.events`)
  assert.ok(kept.some((row) => row['summary'] === 'before the upgrade'))
  const [after] = await postgres.query(name, 'SELECT cluster, "schema" FROM flasher.lease')
  assert.equal(after, { cluster: before?.['cluster'], schema: SCHEMA })

  // Who had followed the older tables reads everything anew, and nothing is upgraded twice.
  await using again = await openMember(folder, url)
  assert.is((await again.machines.list()).length, 3)
  assert.is((await schemasOf(name)).length, 2)
})

test('what another server writes in the middle of an upgrade is in the new tables', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  {
    await using _ = await openFreshMember(url)
  }
  await makeOlder(name)
  await postgres.query(
    name,
    `INSERT INTO flasher.secret (name, version, wrapped) VALUES ('admin-password', 'old', '')`,
  )
  await using other = await openSession(url)
  let isUpgraded = false
  const upgraded = await other.transact('', async () => {
    await other.query(`UPDATE flasher.secret SET version = 'new'`)
    const opening = openFreshMember(url).finally(() => {
      isUpgraded = true
    })
    await waitUntil(
      async () => isUpgraded || (await listWaiting(name)).length > 0,
      () => 'neither waits nor ends',
    )
    return { opening }
  })
  await using _ = await upgraded.opening
  const stored = await postgres.query(name, 'SELECT version FROM flasher.secret')
  assert.equal(stored, [{ version: 'new' }])
})

test('a newer shape is refused, and an upgrade that fails changes nothing', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  {
    await using _ = await openFreshMember(url)
  }
  await postgres.query(name, `UPDATE flasher.lease SET "schema" = ${SCHEMA + 1}`)
  assert.match((await faultOf(openFreshMember(url))).message, `of shape ${SCHEMA + 1}`)
  await makeOlder(name)
  // A column that this release cannot take over.
  await postgres.query(name, 'ALTER TABLE flasher.runs ALTER COLUMN n TYPE text')
  assert.ok(await faultOf(openFreshMember(url)))
  assert.equal(await schemasOf(name), ['flasher'])
})

test('the name of a former schema is plain and short', () => {
  const at = '2026-11-26T10:11:12Z'
  assert.is(renderFormerSchema('1.4.0-rc.1', at), 'flasher_1_4_0_rc_1_20261126t101112z')
  assert.ok(renderFormerSchema('x'.repeat(200), at).length <= 63)
  assert.is(renderFormerSchema('', at), 'flasher_unknown_20261126t101112z')
})

test('machines and runs are shown as columns, and a word that cannot be shown hides no row', async () => {
  const name = await postgres.create()
  await using member = await openFreshMember(postgres.urlOf(name))
  const named = { ...machineOf(1), name: 'web', labels: ['rack a'] }
  const hostile = { ...machineOf(2), name: 'a\u0000b', labels: ['\ud800'] }
  await member.machines.commit(macOf(1), null, named)
  await member.machines.commit(macOf(2), null, hostile)
  const [machines = '', runs = ''] = (readBlocks('several-servers.md', 'sql')[0] ?? '').split('\n')
  const [found, ...others] = await postgres.query(name, machines)
  assert.equal([found?.['name'], found?.['mac'], others.length], ['web', macOf(1), 0])
  const all = await postgres.query(name, 'SELECT mac, name FROM flasher.machine_list')
  assert.equal(
    all.map((row) => [row['mac'], row['name']]),
    [
      [macOf(1), 'web'],
      [macOf(2), null],
    ],
  )
  assert.equal(await postgres.query(name, runs), [])
})

test.run()
