import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openSession } from '#fleet/cluster/postgres.ts'
import { openFreshMember, untilSaid } from '#test/support/cluster/members.ts'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { opened } from '#test/support/opened.ts'
import { faultOf, machineOf, macOf } from '#test/support/server/state.ts'

const test = suite('a database that takes no writes')
const postgres = opened(test, () => startPostgres())

const END_SESSIONS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
  AND application_name = 'flasher-web'`

test('a standby of PostgreSQL is refused with a sentence, and used once it is the primary', async () => {
  const name = await postgres().create()
  await using replica = await startPostgres({ follows: postgres() })
  const url = replica.urlOf(name)
  const fault = await faultOf(openSession(url))
  assert.match(fault.message, 'takes no writes: it is a standby, or read-only')
  assert.match(fault.hint ?? '', 'Let database.url name the primary')
  // A server waits for it, and leads once PostgreSQL has failed over.
  const waiting = openFreshMember(url, { patience: 'wait' })
  await sleep(1500)
  await replica.query('postgres', 'SELECT pg_promote()')
  await using member = await waiting
  assert.is(await member.machines.commit(macOf(1), null, machineOf(1)), true)
})

test('a database that becomes read-only makes changes wait, and nothing is lost', async () => {
  const name = await postgres().create()
  await using member = await openFreshMember(postgres().urlOf(name))
  await member.machines.commit(macOf(1), null, machineOf(1))
  const set = (value: string) =>
    postgres().query(
      'postgres',
      `ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`,
    )
  await set('on')
  await postgres().query('postgres', END_SESSIONS)
  const stored = member.machines.commit(macOf(2), null, machineOf(2))
  await untilSaid(member, 'takes no writes')
  assert.is(member.machines.peek(macOf(2)), null)
  await set('off')
  assert.is(await stored, true)
  assert.match(member.said.join('\n'), 'answers again')
  assert.equal(member.ended, [])
})

test.run()
