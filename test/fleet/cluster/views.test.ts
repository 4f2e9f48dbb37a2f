/** What people read in the shared database, with the statements of the page, whatever machines have sent. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openFreshMember } from '#test/support/cluster/members.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { readBlocks } from '#test/support/docs.ts'
import { macOf, machineOf } from '#test/support/server/state.ts'

const test = suite('views of a shared database')
const postgres = lendDatabases(test)

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
