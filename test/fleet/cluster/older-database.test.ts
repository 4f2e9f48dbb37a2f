/** A database that was restored from an older backup: nobody leads with it by mistake. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readMembership } from '#fleet/state/membership.ts'
import { openSqlite } from '#fleet/state/sqlite.ts'
import { openFreshMember, openMember } from '#test/support/cluster/members.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
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

test.run()
