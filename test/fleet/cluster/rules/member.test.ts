import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  decideSharedFile,
  listDifferences,
  listWaitedFor,
  mayBeCopy,
  type MemberRow,
  parseFacts,
  type SharedFileName,
} from '#fleet/cluster/rules/lease.ts'

const test = suite('servers of one fleet')
const NETBOOT = { version: '', trouble: '' }
const facts = (settings: Record<string, string>) => ({ settings, backups: '', netboot: NETBOOT })
const memberOf = (given: Partial<MemberRow>): MemberRow => ({
  id: 'a',
  name: 'a',
  url: '',
  release: '1.0.0',
  seq: 1,
  silentSeconds: 0,
  facts: facts({}),
  ...given,
})

test('another release leads once every server that is there has it', () => {
  const own = { id: 'b', release: '2.0.0' }
  const members = [memberOf({}), memberOf({ id: 'b', name: 'b' })]
  assert.equal(listWaitedFor(members, own, '1.0.0'), ['a (1.0.0)'])
  assert.equal(listWaitedFor([memberOf({ silentSeconds: 599 })], own, '1.0.0'), ['a (1.0.0)'])
  assert.equal(listWaitedFor([memberOf({ silentSeconds: 600 })], own, '1.0.0'), [])
  assert.equal(listWaitedFor([memberOf({ release: '2.0.0' })], own, '1.0.0'), [])
  assert.equal(listWaitedFor(members, own, '2.0.0'), [], 'it is the release that led')
  assert.equal(listWaitedFor(members, own, ''), [], 'nobody ever led')
})

test('settings that differ are listed with each value, but for what a page saved', () => {
  const members = [
    memberOf({ facts: facts({ 'pxe.tokens': 'off', 'pxe.same': '1', 'boot.release_tag': 'x' }) }),
    memberOf({ name: 'b', facts: facts({ 'pxe.tokens': 'require', 'pxe.same': '1' }) }),
    memberOf({ name: 'c', silentSeconds: 700, facts: facts({}) }),
  ]
  assert.equal(listDifferences(members), [
    {
      name: 'pxe.tokens',
      values: [
        { server: 'a', value: 'off' },
        { server: 'b', value: 'require' },
      ],
    },
  ])
  assert.equal(listDifferences([]), [])
})

test('what another release says of itself in another shape says nothing', () => {
  assert.equal(parseFacts('{"settings":{"a":"b"},"backups":"/x"}').backups, '/x')
  assert.equal(parseFacts('nonsense'), facts({}))
})

test('a row of the same id is suspected where another name or address was there a moment ago', () => {
  const own = { name: 'a', url: 'http://a' }
  assert.not(mayBeCopy({ ...own, silentSeconds: 0 }, own))
  assert.ok(mayBeCopy({ ...own, name: 'b', silentSeconds: 9 }, own))
  assert.ok(mayBeCopy({ ...own, url: 'http://b', silentSeconds: 0 }, own))
  assert.not(mayBeCopy({ ...own, name: 'b', silentSeconds: 10 }, own))
})

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
