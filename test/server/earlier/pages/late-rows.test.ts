/** Rows that are sent to open pages: what follows from time alone is said there as on a fresh page. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MAX_SILENT_FLASH_MS, isOverdue } from '#server/earlier/rules/state.ts'
import { createRowCaches } from '#server/updates/channel.ts'
import { BY, createEarlierFixture } from '#test/support/server/earlier-machine.ts'

const test = suite('the earlier line: rows of late flashes')

test('a row is rendered again once its flash is overdue, and not before', () => {
  const fixture = createEarlierFixture()
  fixture.put({ image: 'a.img', boot_policy: 'flash' })
  fixture.script()
  const { machine } = fixture
  const offered = Date.parse(machine.offered_at ?? BY.at)
  let [now, rendered] = [offered, 0]
  const rows = createRowCaches(() => `row ${(rendered += 1)}`, {
    findRun: () => null,
    isLate: () => isOverdue(machine, new Date(now)),
  }).of('')
  const show = () => rows.render([machine])
  assert.equal([show(), show()], ['data: row 1', 'data: row 1'])
  now += MAX_SILENT_FLASH_MS
  assert.is(show(), 'data: row 1')
  now += 1
  assert.equal([show(), show()], ['data: row 2', 'data: row 2'])
})

test.run()
