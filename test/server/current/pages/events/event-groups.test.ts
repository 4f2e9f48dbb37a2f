/** What a machine reported on its way is one row of the events page. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { JournalEvent } from '#fleet/state/journal.ts'
import { foldSteps } from '#server/current/pages/events/events.ts'

const test = suite('groups of events')
const MAC = '52:54:00:00:00:01'
const OTHER = '52:54:00:00:00:02'

const eventOf = (id: number, given: Partial<JournalEvent> = {}): JournalEvent => ({
  id,
  ts: `2026-11-27T10:00:${String(id).padStart(2, '0')}Z`,
  kind: 'machine.flash_started',
  subject_kind: 'machine',
  subject_id: MAC,
  summary: '',
  actor: 'pxe-client',
  source_ip: null,
  acknowledged: false,
  details: { run: 'one' },
  ...given,
})

const foldedIds = (events: readonly JournalEvent[]) =>
  foldSteps(events).map(({ event, earlier }) => [event.id, ...earlier.map(({ id }) => id)])

test('the steps of a flash are below its end, whatever other machines did meanwhile', () => {
  const events = [
    eventOf(7, { kind: 'machine.flashed' }),
    eventOf(6, { subject_id: OTHER }),
    eventOf(5),
    eventOf(4, { kind: 'netboot.pxe.plan' }),
    eventOf(3, { kind: 'machine.flashed' }),
    eventOf(2),
    eventOf(1, { kind: 'netboot.pxe.offered', subject_id: OTHER }),
  ]
  assert.equal(foldedIds(events), [
    [7, 5, 4],
    [6, 1],
    [3, 2],
  ])
})

test('how a flash ended and what has to be acknowledged is never folded away', () => {
  const failed = { kind: 'machine.flash_failed' }
  assert.equal(foldedIds([eventOf(3), eventOf(2, failed), eventOf(1)]), [[3], [2, 1]])
  const done = { ...failed, acknowledged: true }
  assert.equal(foldedIds([eventOf(2), eventOf(1, done)]), [[2], [1]])
  assert.equal(foldedIds([eventOf(2), eventOf(1, { kind: 'netboot.loop.suspected' })]), [[2], [1]])
})

test('what somebody did to the machine stands between its steps', () => {
  const edit = { kind: 'machine.upserted', actor: 'operator' } as const
  assert.equal(foldedIds([eventOf(3), eventOf(2, edit), eventOf(1)]), [[3], [2], [1]])
  assert.equal(foldedIds([eventOf(2, { actor: 'system' }), eventOf(1)]), [[2], [1]])
  assert.equal(foldedIds([eventOf(2), eventOf(1, { subject_id: null })]), [[2], [1]])
})

test.run()
