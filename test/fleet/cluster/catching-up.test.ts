/** A server that lacks many changes reads them in parts, and has all of them. */
import { copyFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { catchUp } from '#fleet/cluster/joining.ts'
import { openSession, type PgSession } from '#fleet/cluster/postgres.ts'
import { openSqlite } from '#fleet/state/sqlite.ts'
import { openMember } from '#test/support/cluster/members.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { createStateFolder, machineOf, macOf } from '#test/support/server/state.ts'

const test = suite('catching up')
const postgres = lendDatabases(test)

/** The fleet made many changes of which no row is left. */
const MANY = `WITH last AS (SELECT seq FROM flasher.lease),
  noted AS (INSERT INTO flasher.change (seq, id, keys)
    SELECT seq + n, 'many-' || n, '{}' FROM last, generate_series(1, 2500) AS n)
  UPDATE flasher.lease SET seq = seq + 2500`

test('thousands of changes are read in parts, and the first and the last of them count', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using old = await createStateFolder()
  await using folder = await createStateFolder()
  {
    await using member = await openMember(folder, url)
    await member.machines.commit(macOf(1), null, machineOf(1))
  }
  copyFileSync(folder.path, old.path)
  {
    await using member = await openMember(folder, url)
    await member.machines.commit(macOf(2), null, machineOf(2))
  }
  await postgres.query(name, MANY)
  {
    await using member = await openMember(folder, url)
    await member.machines.remove(macOf(1))
    await member.machines.commit(macOf(3), null, machineOf(3))
  }
  await using session = await openSession(url)
  let most = 0
  const counted = async (rows: ReturnType<PgSession['query']>) => {
    most = Math.max(most, (await rows).length)
    return await rows
  }
  const counting: PgSession = {
    ...session,
    query: (text, values) => counted(session.query(text, values)),
    repeat: (text, values) => counted(session.repeat(text, values)),
  }
  using file = openSqlite(old.path)
  await catchUp(counting, file, 'usual')
  const macs = file.all('SELECT mac FROM machines ORDER BY mac').map((row) => row['mac'])
  assert.equal(macs, [macOf(2), macOf(3)])
  assert.ok(most <= 1000, `${most} rows at once`)
})

test.run()
