import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { TIMES } from '#fleet/cluster/rules/lease.ts'
import { openFreshMember } from '#test/support/cluster/members.ts'
import { SHORT_LEASE } from '#test/support/cluster/times.ts'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { mountDisk } from '#test/support/cluster/small-disk.ts'
import { opened } from '#test/support/opened.ts'
import { machineOf, macOf } from '#test/support/server/state.ts'

const test = suite('a database without room')
const lab = opened(test, async (stack) => {
  const postgres = stack.use(await startPostgres())
  const folder = `${postgres.dir}/space`
  const disk = stack.use(await mountDisk(folder, 64, 'postgres'))
  stack.defer(() => postgres.stop('SIGQUIT'))
  return { postgres, folder, disk }
})

/** A lease that is not renewed for so long would be taken. */
const FULL_MS = 1.5 * SHORT_LEASE.leaseMs
const times = { ...TIMES, ...SHORT_LEASE }

test('a full disk of the database makes changes wait: nothing is lost, nobody takes over, and it is said once', async () => {
  const { postgres, folder, disk } = lab()
  await postgres.query('postgres', `CREATE TABLESPACE small LOCATION '${folder}'`)
  await postgres.query('postgres', 'CREATE DATABASE small TABLESPACE small')
  const url = postgres.urlOf('small')
  await using leader = await openFreshMember(url, { times })
  await leader.machines.commit(macOf(1), null, machineOf(1))
  const leaving = new AbortController()
  const member = { id: 'b', name: 'b', release: '', url: 'http://b' }
  const options = { patience: 'wait', signal: leaving.signal, member, times } as const
  const standby = openFreshMember(url, options).catch(() => null)
  await disk.fill()
  const tree = JSON.stringify({ id: 'x'.repeat(200_000) })
  let isStored = false
  const stored = leader.machines
    .saveHardware(macOf(1), Buffer.from(`${tree}${crypto.randomUUID()}`), '2026-01-01T00:00:00Z')
    .then(() => {
      isStored = true
    })
  const many = Array.from({ length: 300 }, (_, at) =>
    leader.machines.commit(macOf(at + 2), null, machineOf(at + 2)),
  )
  await sleep(FULL_MS)
  assert.is(isStored && (await Promise.all(many)).every(Boolean), false, 'there was room')
  await disk.empty()
  await stored
  assert.ok((await Promise.all(many)).every(Boolean))
  assert.equal(leader.ended, [])
  const said = leader.said.filter((line) => line.includes('disk of the database is full'))
  assert.is(said.length, 1, leader.said.join('\n'))
  const [lease] = await postgres.query('small', 'SELECT epoch::int FROM flasher.lease')
  assert.is(lease?.['epoch'], 1)
  const [counted] = await postgres.query('small', 'SELECT count(*)::int AS n FROM flasher.machines')
  assert.is(counted?.['n'], 301)
  leaving.abort()
  await standby
})

test.run()
