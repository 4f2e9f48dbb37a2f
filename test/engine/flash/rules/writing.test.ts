import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  createBusyMeter,
  decideByCommand,
  decideZeroMethod,
  longestZeroRun,
} from '#engine/flash/rules/writing.ts'

const test = suite('decideZeroMethod')

/** The backing file of a loop device, write_zeroes_max_bytes, discard_max_bytes. */
const rows = [
  ['a loop whose file is sparse', 'sparse', 4096, 4096, 'discard'],
  ['a loop whose file is fully allocated', 'allocated', 4096, 4096, 'zero-range'],
  ['a loop over an allocated file that can only discard', 'allocated', 0, 4096, 'discard'],
  ['a loop that can only discard', 'sparse', 0, 4096, 'discard'],
  ['a loop on a file system without holes', 'sparse', 4096, 0, 'zero-out'],
  ['a loop that can do nothing', 'allocated', 0, 0, 'write'],
  ['an NVMe disk with write-zeroes', null, 131072, 4096, 'zero-out'],
  ['a disk whose discard promises nothing', null, 0, 4096, 'write'],
  ['a plain disk', null, 0, 0, 'write'],
] as const
for (const [name, loop, writeZeroesMaxBytes, discardMaxBytes, method] of rows)
  test(name, () => {
    assert.is(decideZeroMethod({ loop, writeZeroesMaxBytes, discardMaxBytes }), method)
  })

const MB = 1e6
/** writing and zeroing in bytes per second, the run, whether what is written is read back. */
const choices = [
  ['nothing is known yet', null, null, MB, false, true],
  ['zeroing is not known yet, the run long', 200 * MB, null, 64 * MB, false, true],
  ['a short run on a fast disk', 3000 * MB, null, MB, false, false],
  ['a short run on a slow disk', 200 * MB, null, 4 * MB, false, true],
  ['zeroing is faster', 200 * MB, 1000 * MB, 64 * MB, false, true],
  ['zeroing is a little slower', 1500 * MB, 1000 * MB, 64 * MB, false, true],
  ['zeroing is much slower', 3000 * MB, 1000 * MB, 64 * MB, false, false],
  [
    'zeroing is slower than writing, but not than that and reading',
    3000 * MB,
    1000 * MB,
    64 * MB,
    true,
    true,
  ],
] as const
for (const [name, writing, zeroing, bytes, verifies, byCommand] of choices)
  test(name, () => {
    assert.is(decideByCommand({ writing, zeroing }, bytes, verifies), byCommand)
  })

const MIB = 1024 * 1024
/** What a device zeroes in a second, what it zeroed last, and the most that it zeroes next. */
const longest = [
  ['a speed that is not known', null, 128 * MIB, 128 * MIB],
  ['a slow disk', 200 * MIB, 128 * MIB, 128 * MIB],
  ['a fast one', 2048 * MIB, 1024 * MIB, 512 * MIB],
  ['one that only takes a note of it', 1e15, 1024 * MIB, 1024 * MIB],
  ['one that did little at once so far', 1e15, 128 * MIB, 256 * MIB],
  ['one that did next to nothing so far', 1e15, MIB, 128 * MIB],
] as const
for (const [name, zeroing, last, bytes] of longest)
  test(`the longest run of ${name}`, () => {
    assert.is(longestZeroRun(zeroing, last), bytes)
  })

test('says nothing before it saw enough', () => {
  const meter = createBusyMeter()
  assert.is(meter.rate, null)
  meter.begin(0)
  assert.is(meter.rate, null)
  meter.end(1, 8 * MIB - 1)
  assert.is(meter.rate, null)
  meter.begin(1)
  meter.end(1, 1)
  assert.is(meter.rate, 8 * MIB)
})
test('no time at all is no rate', () => {
  const meter = createBusyMeter()
  meter.begin(5)
  meter.end(5, 100 * MIB)
  assert.is(meter.rate, null)
})
test('idle time does not count', () => {
  const meter = createBusyMeter()
  meter.begin(0)
  meter.end(2, 10 * MIB)
  meter.begin(100)
  meter.end(103, 10 * MIB)
  assert.is(meter.rate, 4 * MIB)
})
test('what overlaps counts once', () => {
  const meter = createBusyMeter()
  meter.begin(0)
  meter.begin(1)
  meter.end(2, 10 * MIB)
  meter.begin(3)
  meter.end(4, 10 * MIB)
  meter.end(5, 10 * MIB)
  assert.is(meter.rate, 6 * MIB)
})

test.run()
