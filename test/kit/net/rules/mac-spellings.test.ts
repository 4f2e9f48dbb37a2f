/** MAC addresses in every spelling that people search for. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findMac, listSpellings, parseMac } from '#kit/net/rules/mac.ts'
import { createMatch } from '#server/earlier/pages/line-pages.ts'
import { viewMachine } from '#server/earlier/pages/machine-view.ts'
import { createMachine } from '#server/earlier/rules/machine.ts'
import { createStateFolder, macOf, noteOf } from '#test/support/server/state.ts'

const test = suite('spellings of a MAC address')
/** Nothing is flashed, and no workflow has run. */
const NOTHING = {
  runs: { findRunning: () => null, findWritten: () => null },
  workflows: { list: () => [] },
  now: () => new Date(),
}
const SPELLED = [
  'aa:bb:cc:dd:ee:01',
  'AA-BB-CC-DD-EE-01',
  'aabb.ccdd.ee01',
  'AABBCCDDEE01',
  'aabb-ccdd-ee01',
]

test('each whole spelling is found, and nothing else', () => {
  const mac = parseMac(SPELLED[0] ?? '')
  assert.ok(mac.ok)
  for (const word of SPELLED) assert.is(findMac(word), mac.value, word)
  assert.equal(listSpellings(mac.value), [
    'aa:bb:cc:dd:ee:01',
    'aa-bb-cc-dd-ee-01',
    'aabbccddee01',
    'aabb.ccdd.ee01',
  ])
  for (const word of ['aa:bb', 'aa:bb-cc:dd-ee:01', 'aabbccddee0', 'aabb.ccddee01', 'zz', '']) {
    assert.is(findMac(word), null, word)
  }
})

test('the list of machines finds it, whole and in parts', () => {
  const context = {}
  const match = createMatch({
    context: () => context,
    view: (machine) => viewMachine(machine, NOTHING),
    now: () => new Date(),
  })
  const fleet = [macOf(1), macOf(0xabcdef)].map((mac) => createMachine(mac, 'local', ''))
  for (const q of ['0200.00ab.cdef', '020000ABCDEF', '02-00-00-AB', 'mac:020000abcdef', 'ab:cd']) {
    const found = match(fleet, new URLSearchParams({ q }))
    assert.equal(
      found.map(({ mac }) => mac),
      [macOf(0xabcdef)],
      q,
    )
  }
})

test('so do events', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  for (const n of [1, 2]) await state.journal.record(noteOf({ subject_id: macOf(n) }))
  for (const text of ['0200.0000.0002', '020000000002', '02-00-00-00-00-02']) {
    const found = await state.journal.list({ text, limit: 9 })
    assert.equal(
      found.map(({ subject_id }) => subject_id),
      [macOf(2)],
      text,
    )
  }
})

test.run()
