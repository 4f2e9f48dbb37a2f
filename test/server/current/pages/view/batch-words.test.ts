/** The events of batches in words: what was done, to how many machines, with which image. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sayBatch } from '../../../../../runtime/server/current/pages/view/batch-view.ts'

const test = suite('events of batches in words')

const ordered = (details: Readonly<Record<string, unknown>>) =>
  sayBatch({ kind: 'batch.ordered', summary: 'the summary', details })

const say = (summary: string) => sayBatch({ kind: 'batch.ended', summary, details: null })

test('what was ordered names machines and image', () => {
  const image = { action: 'flash', name: 'debian.img to rack-0', done: 12, skipped: 0 }
  assert.is(ordered(image), 'Armed 12 machines: debian.img to rack-0')
  const several = { action: 'flash', name: 'flash to rack-0', done: 1, skipped: 2 }
  assert.is(ordered(several), 'Armed 1 machine: the image of each to rack-0 (2 skipped)')
  assert.is(ordered({ ...several, action: 'lock', name: 'lock', skipped: 0 }), 'Locked 1 machine')
  const lock = { action: 'lock', name: 'lock to rack-0', done: 3, skipped: 0 }
  assert.is(ordered(lock), 'Locked 3 machines: rack-0')
})

test('what came of it names no action of the API', () => {
  assert.is(
    say('flash to rack-0 has ended: 3 done'),
    'the image of each to rack-0 has ended: 3 done',
  )
  assert.is(say('debian.img to rack-0 has ended: 3 done'), 'debian.img to rack-0 has ended: 3 done')
  assert.is(ordered({ action: 'unknown' }), 'the summary')
})

test.run()
