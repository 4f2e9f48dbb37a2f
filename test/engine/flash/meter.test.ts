import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createMeter } from '#engine/flash/meter.ts'

const test = suite('meter')

test('shows the progress by now', () => {
  let bytesRead = 0
  const meter = createMeter({
    phase: 'write',
    totalBytes: 1000,
    sourceBytes: 500,
    bytesRead: () => bytesRead,
  })
  const first = { event: 'writing', phase: 'write', bytes_read: 0, bytes_written: 0 } as const
  const known = { total_bytes: 1000, rate: 0, eta_seconds: null }
  assert.equal(meter.snapshot('img.xz'), { ...first, note: 'img.xz', ...known })
  bytesRead = 50
  meter.add(100)
  const second = meter.snapshot()
  assert.not('note' in second)
  assert.is(second.bytes_written, 100)
  assert.ok(second.rate > 0 && Number.isInteger(second.eta_seconds))
})
test('a sector filled up does not count for more than the image', () => {
  const meter = createMeter({
    phase: 'write',
    totalBytes: 1000,
    sourceBytes: null,
    bytesRead: () => 5,
    bytesDone: 1024,
  })
  assert.is(meter.snapshot().bytes_written, 1000)
})
test('where the total is not known, the time left is that of the reading', () => {
  let bytesRead = 0
  const meter = createMeter({
    phase: 'write',
    totalBytes: null,
    sourceBytes: 100,
    bytesRead: () => bytesRead,
  })
  meter.snapshot()
  bytesRead = 100
  meter.add(5000)
  const { total_bytes, eta_seconds, bytes_written } = meter.snapshot()
  assert.equal([total_bytes, eta_seconds, bytes_written], [null, 0, 5000])
  const blind = createMeter({
    phase: 'write',
    totalBytes: null,
    sourceBytes: null,
    bytesRead: () => bytesRead,
  })
  blind.snapshot()
  assert.is(blind.snapshot().eta_seconds, null)
})
test.run()
