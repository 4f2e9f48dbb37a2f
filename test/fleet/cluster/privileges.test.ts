/** The privileges that docs/growing.md grants are enough for a server, and those it leaves out are refused with a sentence. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openFreshMember } from '#test/support/cluster/members.ts'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { opened } from '#test/support/opened.ts'
import { readBlocks } from '#test/support/docs.ts'
import { faultOf } from '#test/support/server/state.ts'

const test = suite('privileges in the database')
const postgres = opened(test, () => startPostgres())

/** The documented lines, for a user and a database of this name; the user `flasher` of the tests may do everything. */
async function grant(name: string, change: (text: string) => string = (text) => text) {
  const [block = ''] = readBlocks('growing.md', 'sql')
  const lines = change(block)
    .replaceAll(/\bflasher\b/g, name)
    .split(/;\n/)
  assert.ok(lines.length > 4)
  for (const line of lines) await postgres().query('postgres', line)
  return postgres().urlOf(name).replace('//flasher@', `//${name}@`)
}

test('the documented user makes its tables, leads, and does without CREATE afterwards', async () => {
  const url = await grant('plain')
  {
    await using first = await openFreshMember(url)
    assert.ok(first.leader.lease.epoch > 0)
  }
  await postgres().query('postgres', 'REVOKE CREATE ON DATABASE plain FROM plain')
  await using again = await openFreshMember(url)
  assert.ok(again.leader.lease.epoch > 1)
  const [role] = await postgres().query(
    'postgres',
    `SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication AS more FROM pg_roles WHERE rolname = 'plain'`,
  )
  assert.is(role?.['more'], false)
})

test('without CREATE a first start says what to grant', async () => {
  const url = await grant('poor', (text) => text.replace('CONNECT, CREATE', 'CONNECT'))
  const fault = await faultOf(openFreshMember(url))
  assert.match(fault.message, 'may not do what this server needs')
  assert.match(fault.hint ?? '', 'GRANT CREATE ON DATABASE')
})

test.run()
