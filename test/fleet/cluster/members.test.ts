import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openSession } from '#fleet/cluster/postgres.ts'
import { readMembers, writeMember } from '#fleet/cluster/members.ts'
import { openFreshMember } from '#test/support/cluster/members.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { faultOf, RELEASE } from '#test/support/server/state.ts'

const test = suite('servers and their releases')
const postgres = lendDatabases(test)

const memberOf = (id: string, release: string) => ({ id, name: `server-${id}`, release, url: '' })
const NEW = '99.0.0'

test('a new release leads once every server has it, was forgotten, or was silent for ten minutes', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  {
    await using _ = await openFreshMember(url, { member: memberOf('a', RELEASE) })
  }
  await using session = await openSession(url)
  await writeMember(session, memberOf('a', RELEASE), 0, '{}')
  const upgraded = { member: memberOf('b', NEW) }
  const refused = await faultOf(openFreshMember(url, upgraded))
  assert.match(refused.message, `${NEW} leads once every server has it`)
  assert.match(refused.message, `server-a (${RELEASE})`)
  await postgres.query(name, `UPDATE flasher.member SET seen = now() - interval '10 minutes'`)
  {
    await using _ = await openFreshMember(url, upgraded)
  }
  // Back to the older one: the same rule.
  await writeMember(session, upgraded.member, 0, '{}')
  const back = { member: memberOf('a', RELEASE) }
  assert.match((await faultOf(openFreshMember(url, back))).message, `server-b (${NEW})`)

  await using home = await createServerHome()
  const env = { FLASHER_DATABASE_URL: url }
  const status = await home.run(['database', 'status'], env)
  assert.match(status.stdout, /^Server +server-b, release 99\.0\.0, /m)
  const unknown = await home.run(['database', 'forget', 'nobody'], env)
  assert.match(unknown.stderr, 'no server named nobody')
  const forgotten = await home.run(['database', 'forget', 'server-b'], env)
  assert.is(forgotten.code, 0, forgotten.stderr)
  assert.equal(
    (await readMembers(session)).map((each) => each.name),
    ['server-a'],
  )
  {
    await using _ = await openFreshMember(url, back)
  }
})

test('of very many rows those that were seen last are read, and no more of them than a server has to say', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using _ = await openFreshMember(url)
  await using session = await openSession(url)
  await writeMember(session, memberOf('z', RELEASE), 0, '{}')
  await postgres.query(
    name,
    `INSERT INTO flasher.member (id, name, url, release, facts, seen)
     SELECT 'old-' || n, 'old', '', '', repeat('x', 100000), now() - n * interval '1 minute'
     FROM generate_series(1, 300) AS n`,
  )
  const members = await readMembers(session)
  assert.is(members.length, 100)
  assert.ok(members.some(({ id }) => id === 'z'))
  assert.ok(members.some(({ id }) => id === 'old-99'))
})

test.run()
