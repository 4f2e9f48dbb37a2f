import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { takeOne, type Bucket } from '#kit/foundation/bucket.ts'
import { delayUntilNext, intervalOf } from '#server/updates/rules/cadence.ts'
import {
  addFailure,
  countAll,
  networkOf,
  nextFailure,
  throttleKey,
  waitOf,
  type AddressFailures,
  type Failures,
} from '#kit/web/access/rules/login-throttle.ts'

const test = suite('throttles')

test('a bucket gives what it holds, then so many a minute', () => {
  const rate = { perMinute: 60, most: 3 }
  let bucket: Bucket | null = null
  for (let n = 0; n < 3; n++) {
    bucket = takeOne(bucket, 0, rate)
    assert.ok(bucket)
  }
  assert.is(takeOne(bucket, 999, rate), null)
  assert.ok(takeOne(bucket, 1000, rate))
  assert.is(takeOne(bucket, -50_000, rate), null)
  assert.equal(takeOne(bucket, 1e9, rate), { level: 2, at: 1e9 })
  assert.is(takeOne(null, 0, { perMinute: 0, most: 0 }), null)
})

test('no order of requests takes more than the rate allows', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(200), { maxLength: 300 }), (pauses) => {
      const rate = { perMinute: 600, most: 10 }
      let [bucket, now, taken]: [Bucket | null, number, number] = [null, 0, 0]
      for (const pause of pauses) {
        now += pause
        const next = takeOne(bucket, now, rate)
        if (next === null) continue
        bucket = next
        taken += 1
      }
      assert.ok(taken <= 10 + now / 100 + 1e-6)
    }),
  )
})

test('each wrong password after the third waits twice as long, up to five minutes', () => {
  let failures: Failures | null = null
  let now = 0
  const waits: number[] = []
  for (let n = 0; n < 16; n++) {
    failures = nextFailure(failures, now)
    waits.push(waitOf(failures, now))
    now = failures.until
  }
  assert.equal(waits, [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300])
  assert.is(nextFailure(failures, now + 3_600_000).count, 1)
  assert.is(waitOf(null, now), 0)
})

test('failures of an address at several accounts make one wait, and are forgotten one by one', () => {
  let failures: AddressFailures | null = null
  for (const account of ['a', 'b', 'a', 'b']) failures = addFailure(failures, account, 0)
  assert.is(countAll(failures ?? new Map()), 4)
  assert.is(waitOf(failures?.get('b') ?? null, 0), 1, 'the fourth waits')
  assert.is(waitOf(failures?.get('a') ?? null, 0), 0)
  const later = addFailure(failures, 'a', 3_600_500)
  assert.equal(
    [...later].map(([account, { count }]) => [account, count]),
    [
      ['b', 2],
      ['a', 1],
    ],
  )
})

test('whom it counts for', () => {
  assert.is(throttleKey('192.0.2.1'), '192.0.2.1')
  assert.is(throttleKey('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2')
  assert.is(throttleKey('2001:db8::1'), '2001:db8:0:0')
  assert.is(throttleKey('2001:db8::2'), throttleKey('2001:db8::1'))
  assert.is(throttleKey('fe80::1'), 'fe80:0:0:0')
  assert.is(throttleKey('::1'), '0:0:0:0')
  assert.is(throttleKey(null), 'unknown')
})

test('a network is an IPv4 /24 or an IPv6 /64', () => {
  assert.is(networkOf('192.0.2.1'), networkOf('192.0.2.254'))
  assert.is.not(networkOf('192.0.2.1'), networkOf('192.0.3.1'))
  assert.is(networkOf('2001:db8:1:2::1'), networkOf('2001:db8:1:2:3:4:5:6'))
  assert.is.not(networkOf('2001:db8:1:2::1'), networkOf('2001:db8:1:3::1'))
  assert.is(networkOf(null), 'unknown')
})

test('a live channel speaks at once, then as often as its size allows', () => {
  assert.is(intervalOf(0, 0), 150)
  assert.is(intervalOf(50_000_000, 0), 1150)
  assert.is(intervalOf(1e12, 0), 10_000)
  assert.is(intervalOf(0, 100), 500)
  assert.is(delayUntilNext(-Infinity, 0, 150), 0)
  assert.is(delayUntilNext(1000, 1050, 150), 100)
  assert.is(delayUntilNext(1000, 2000, 150), 0)
  assert.is(delayUntilNext(1000, 0, 150), 150)
})

test.run()
