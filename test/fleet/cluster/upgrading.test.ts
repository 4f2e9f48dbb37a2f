import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openSession } from '#fleet/cluster/postgres.ts'
import { renderFormerSchema } from '#fleet/cluster/rules/shared-tables.ts'
import { SCHEMA } from '#fleet/state/schema.ts'
import { openFreshMember, openMember } from '#test/support/cluster/members.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { createStateFolder, faultOf, macOf, machineOf, noteOf } from '#test/support/server/state.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('upgrades of a shared database')
const postgres = lendDatabases(test)

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

test.run()
