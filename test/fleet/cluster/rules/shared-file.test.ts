import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideSharedFile, type SharedFileName } from '#fleet/cluster/rules/member.ts'

const test = suite('files that servers share')
const noted = { version: 'v1', digest: 'one' }

/** What becomes of a file, by its digest and the row's version. */
const ROWS: readonly (readonly [
  SharedFileName,
  typeof noted | null,
  string | null,
  string | null,
  ReturnType<typeof decideSharedFile>,
  string,
])[] = [
  ['admin-password', null, null, null, 'nothing', 'nobody has one'],
  ['session-secret', null, null, null, 'renew', 'the first server needs a key'],
  ['session-secret', null, 'one', null, 'bring', 'the first server has one'],
  ['session-secret', null, 'other', 'v1', 'take', 'a first join ends no sessions'],
  ['session-secret', null, null, 'v1', 'take', 'a first join with an empty folder ends none'],
  ['session-secret', noted, null, 'v1', 'renew', 'it was deleted: all sessions end'],
  ['session-secret', noted, null, 'v2', 'renew', 'it was deleted, whatever others did'],
  ['session-secret', noted, 'one', 'v1', 'nothing', 'nobody changed it'],
  ['session-secret', noted, 'one', 'v2', 'take', 'another server changed it'],
  ['session-secret', noted, 'two', 'v1', 'bring', 'it was changed here'],
  ['admin-password', noted, 'two', 'v2', 'take', 'what was acknowledged elsewhere counts'],
  ['admin-password', noted, null, 'v1', 'take', 'a lost file comes back'],
]

for (const [name, note, local, stored, wanted, why] of ROWS) {
  test(`${name}: ${why}`, () => {
    assert.is(decideSharedFile({ name, noted: note, local, stored }), wanted)
  })
}

test.run()
