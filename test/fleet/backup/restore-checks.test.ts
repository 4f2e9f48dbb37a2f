import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inspectState } from '#fleet/state/schema.ts'
import { openBackupFixture, populate } from '#test/support/server/backups.ts'
import { createStateFolder, failureOf } from '#test/support/server/state.ts'

const test = suite('what a restore takes')

const SPOILERS: readonly (readonly [string, RegExp])[] = [
  ['CREATE VIEW fleet AS SELECT * FROM machines', /it has a view named fleet/],
  [
    'CREATE TRIGGER gone AFTER UPDATE ON machines BEGIN DELETE FROM tokens; END',
    /it has a trigger named gone/,
  ],
  ['CREATE TABLE notes (text TEXT)', /its table notes is not one/],
  ['DROP TABLE settings', /it has no settings/],
  ['DROP INDEX events_by_kind', /it has no events_by_kind/],
  ['ALTER TABLE machines ADD COLUMN more TEXT', /its table machines is not one/],
  ["UPDATE machines SET record = x'00'", /table machines holds something else .* column record/],
  ['DELETE FROM flasher_state', /not written by this program/],
]

test('only a database that the server can start and work with', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder)
  await populate(fixture)
  for (const [index, [spoil, reason]] of SPOILERS.entries()) {
    const path = join(folder.dir, `copy-${index}.db`)
    await fixture.database.copyTo(path)
    assert.is(inspectState(path, 'current').line, 'current')
    const file = new DatabaseSync(path)
    file.exec(spoil)
    file.close()
    const inspect = async () => inspectState(path, 'current')
    assert.match((await failureOf(inspect())).message, reason, spoil)
  }
})

test.run()
