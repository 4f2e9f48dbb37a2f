import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseMac } from '#kit/net/rules/mac.ts'
import { endRun, nextRun } from '#fleet/run/rules/run-record.ts'
import {
  createRun,
  createSilentRun,
  ProgressSchema,
  RUN_PHASES,
  type RunProgress,
  type ProgressPost,
  type Run,
  type RunOrigin,
} from '#engine/inventory/rules/run.ts'

const mac = parseMac('52:54:00:00:00:01')
if (!mac.ok) throw new Error('not a MAC')
const ORIGIN: RunOrigin = {
  mac: mac.value,
  mode: 'flash',
  image: null,
  disk: null,
  armed_by: { actor: 'operator', ip: '192.0.2.9', at: '2026-01-01T00:00:00.000Z' },
}
const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString()
const post = (fields: Partial<ProgressPost> = {}): RunProgress =>
  ProgressSchema.parse({
    run: 'run-00000001',
    phase: 'write',
    bytes_read: 0,
    bytes_written: 0,
    total_bytes: null,
    rate: null,
    eta_seconds: null,
    ...fields,
  })
const begin = () =>
  nextRun(createRun('run-00000001', ORIGIN, at(0)), post({ phase: 'started' }), at(0))
const play = (run: Run, ...posts: readonly RunProgress[]) =>
  posts.reduce((before, each, second) => nextRun(before, each, at(second + 1)), run)

const test = suite('nextRun')

test('a flash from its first post to its last', () => {
  const image = { name: 'debian.img.zst', sha256: 'a'.repeat(64), format: 'img.zst' }
  const disk = { path: '/dev/sda', model: 'SSD 980', serial: 'S5', size_bytes: 500 }
  const run = play(
    begin(),
    post({ phase: 'started', image, disk, mode: 'interactive' }),
    post({ bytes_read: 10, bytes_written: 40, total_bytes: 100, rate: 20, eta_seconds: 3 }),
    post({ bytes_read: 30, bytes_written: 100, total_bytes: 100, bottleneck: 'disk' }),
    post({ phase: 'verify', bytes_read: 30, bytes_written: 5, total_bytes: 90, rate: 5 }),
    post({ phase: 'done', bytes_read: 30, bytes_written: 100, total_bytes: 100, verified: true }),
  )
  assert.is(run.phase, 'done')
  assert.is(run.result, 'done')
  assert.is(run.mode, 'interactive')
  assert.is(run.started_at, at(0))
  assert.is(run.ended_at, at(5))
  assert.is(run.bytes_written, 100)
  assert.is(run.verified, true)
  assert.is(run.bottleneck, 'disk')
  assert.is(run.rate, null)
  assert.equal(run.image, { ...image, src: null, ref: null, size_bytes: null })
  assert.equal(run.disk, { ...disk, tran: null })
  assert.equal(run.armed_by, ORIGIN.armed_by)
  assert.equal(
    run.steps.map((step) => [step.phase, step.at]),
    [
      ['started', at(0)],
      ['write', at(2)],
      ['verify', at(4)],
      ['done', at(5)],
    ],
  )
})

test('the bar of verifying is its own, and leaves what was written as it is', () => {
  const written = play(begin(), post({ bytes_written: 80, total_bytes: 80 }))
  const run = play(written, post({ phase: 'verify', bytes_written: 8, total_bytes: 60 }))
  assert.equal([run.bytes_written, run.total_bytes], [80, 80])
  assert.equal([run.step_bytes, run.step_total], [8, 60])
})

test('flushing after verifying takes nothing of its figures', () => {
  const run = play(
    begin(),
    post({ bytes_written: 80, total_bytes: 80 }),
    post({ phase: 'verify', bytes_written: 60, total_bytes: 60 }),
    post({ phase: 'sync', bytes_written: 60, total_bytes: 60 }),
  )
  assert.equal([run.phase, run.bytes_written, run.total_bytes], ['sync', 80, 80])
})

test('what the machine leaves out, the server knows, of the same image and disk', () => {
  const known = { src: 'https://a', ref: 'r', sha256: 's', format: 'img', size_bytes: 4 }
  const image = { name: 'debian', ...known }
  const disk = { path: '/dev/sda', model: 'SSD', serial: 'S1', size_bytes: 9, tran: 'nvme' }
  const run = createRun('run-00000001', { ...ORIGIN, image, disk }, at(0))
  const same = nextRun(
    run,
    post({ image: { name: 'debian', sha256: 'new' }, disk: { path: '', serial: 'S1' } }),
    at(1),
  )
  assert.equal([same.image, same.disk], [{ ...image, sha256: 'new' }, disk])
  const other = nextRun(
    run,
    post({ image: { name: 'other' }, disk: { path: '/dev/sdb', serial: 'S2' } }),
    at(1),
  )
  assert.equal([other.image?.sha256, other.disk?.model], [null, null])
})

test('late, double and out of order', () => {
  const newest = post({ bytes_read: 50, bytes_written: 90, total_bytes: 100, rate: 9 })
  const late = post({ bytes_read: 20, bytes_written: 40, total_bytes: 100, rate: 4 })
  const run = play(begin(), newest, late, newest)
  assert.equal([run.bytes_read, run.bytes_written, run.rate], [50, 90, 9])
  assert.is(run.steps.length, 2)

  const verifying = play(run, post({ phase: 'verify', bytes_written: 7 }), late)
  assert.is(verifying.phase, 'verify')
  assert.equal([verifying.step_bytes, verifying.bytes_written], [7, 90])
  const left = play(verifying, post({ phase: 'sync' }), post({ phase: 'verify' }))
  assert.is(left.phase, 'sync')
  assert.is(left.steps.filter(({ phase }) => phase === 'verify').length, 1)
})

test('what ended stays ended', () => {
  for (const phase of ['done', 'failed', 'cancelled'] as const) {
    const ended = play(begin(), post({ phase, reason: 'why' }))
    for (const other of RUN_PHASES) {
      const after = nextRun(ended, post({ phase: other }), at(99))
      assert.is(after, ended, `${phase}, then ${other}`)
    }
    assert.is(endRun(ended, 'failed', 'no', at(99)), ended)
    assert.is(endRun(ended, 'lost', null, at(99)), ended)
  }
})

test('what became of a comparison is kept, whichever post said it', () => {
  const delta = 'mostly-different'
  assert.is(play(begin(), post({ delta }), post({ bytes_written: 9 })).delta, delta)
  const done = endRun(begin(), 'done', null, at(9))
  assert.is(done.delta, null)
  assert.is(nextRun(done, post({ phase: 'done', delta }), at(10)).delta, delta)
})

test('the last figures count even when the end was known before', () => {
  const done = endRun(play(begin(), post({ bytes_written: 4 })), 'done', null, at(9))
  const told = nextRun(done, post({ phase: 'done', bytes_written: 9, verified: true }), at(10))
  assert.equal([told.bytes_written, told.verified, told.ended_at], [9, true, at(9)])
  assert.is(nextRun(done, post({ phase: 'failed', bytes_written: 9 }), at(10)), done)
})

test('a lost run ended when it was last heard of, and still takes its true end', () => {
  const heard = play(begin(), post({ bytes_written: 4 }))
  const lost = endRun(heard, 'lost', 'it began another', at(500))
  assert.equal([lost.result, lost.ended_at, lost.phase], ['lost', at(1), 'write'])
  assert.is(nextRun(lost, post({ bytes_written: 50 }), at(501)), lost)
  assert.is(nextRun(lost, post({ phase: 'done' }), at(502)).result, 'done')
  assert.is(endRun(lost, 'failed', 'disk gone', at(503)).reason, 'disk gone')
})

test('a client that only says that it is done has a run without bytes', () => {
  const run = endRun(createSilentRun('plan-0001', ORIGIN, at(0)), 'done', null, at(60))
  assert.equal([run.started_at, run.ended_at, run.reported], [at(0), at(60), false])
  assert.is(
    endRun(createSilentRun('plan-0001', ORIGIN, null), 'done', null, at(6)).started_at,
    null,
  )
})

test('texts that describe are cut, and figures that cannot be are left out', () => {
  const { reason, disk, image } = post({
    reason: 'x'.repeat(9000),
    disk: { path: '/dev/sda', model: 'm'.repeat(1000), size_bytes: -4 },
    image: { name: 'n'.repeat(1000), sha256: 'a'.repeat(999) },
  })
  assert.is(reason?.length, 500)
  assert.equal([disk?.model?.length, disk?.size_bytes], [128, null])
  assert.equal([image?.name.length, image?.sha256?.length], [255, 64])
})

test('counters and phase must be what they are', () => {
  const bad: readonly object[] = [
    { bytes_written: -1 },
    { bytes_written: 1.5 },
    { bytes_written: 2 ** 60 },
    { bytes_read: '7' },
    { total_bytes: -1 },
    { rate: -1 },
    { rate: Infinity },
    { phase: 'lost' },
    { run: 'short' },
    { run: '../../etc/passwd' },
    { run: 'a'.repeat(65) },
  ]
  for (const fields of bad) {
    assert.not.ok(
      ProgressSchema.safeParse({ ...post(), ...fields }).success,
      JSON.stringify(fields),
    )
  }
  assert.ok(ProgressSchema.safeParse({ ...post(), later: 'more' }).success)
})

test('whatever comes in whatever order, counters and phases never go back', () => {
  const count = fc.integer({ min: 0, max: 1000 })
  const posts = fc.array(
    fc
      .record({
        phase: fc.constantFrom(...RUN_PHASES),
        bytes_read: count,
        bytes_written: count,
        total_bytes: fc.option(count),
        rate: fc.option(count),
      })
      .map((fields) => post(fields)),
    { maxLength: 30 },
  )
  fc.assert(
    fc.property(posts, (sent) => {
      let run = begin()
      for (const [second, each] of sent.entries()) {
        const next = nextRun(run, each, at(second))
        assert.ok(next.bytes_read >= run.bytes_read)
        assert.ok(next.bytes_written >= run.bytes_written)
        assert.ok(next.phase !== run.phase || next.step_bytes >= run.step_bytes)
        assert.ok(run.result === null || next.result === run.result)
        assert.ok(next.steps.length >= run.steps.length && next.steps.length <= 6)
        run = next
      }
    }),
  )
})

test.run()
