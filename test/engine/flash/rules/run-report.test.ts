import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FlashEvent } from '#engine/flash/rules/flash.ts'
import { ProgressSchema } from '#engine/inventory/rules/run.ts'
import {
  endReport,
  milestone,
  nextReport,
  reportPhase,
  startReport,
  type RunFacts,
} from '#engine/flash/rules/run-report.ts'

const test = suite('remote report')

const FACTS: RunFacts = {
  run: 'run-number-1',
  mode: 'flash',
  plan: null,
  disk: {
    path: '/dev/sda',
    size: '1G',
    vendor: null,
    model: 'Disk 9',
    serial: null,
    tran: 'sata',
    removable: false,
    readonly: false,
    wwn: '0x5000',
    size_bytes: 2 ** 30,
  },
  choice: {
    image: {
      name: 'debian.img',
      location: 'https://user:secret@files.lan/debian.img?token=abc',
      format: 'img',
      sizeBytes: 100,
      sha256: null,
      ref: 'a'.repeat(64),
    },
    disk: '/dev/sda',
  },
}
const writing = (phase: 'write' | 'verify', bytes_written: number): FlashEvent => ({
  event: 'writing',
  phase,
  bytes_read: bytes_written,
  bytes_written,
  total_bytes: 200,
  rate: 10,
  eta_seconds: 1,
  note: 'img',
  bottleneck: null,
})
const FAILED = {
  kind: 'failed',
  code: 'write-failed',
  reason: 'x'.repeat(900),
  hint: null,
  leaves: '',
} as const

test('the first report says what is flashed, and no secret', () => {
  const report = startReport(FACTS)
  assert.equal(report.image, {
    name: 'debian.img',
    src: 'https://files.lan/debian.img?token=***',
    ref: 'a'.repeat(64),
    sha256: null,
    format: 'img',
    size_bytes: 100,
  })
  assert.equal(report.disk, {
    path: '/dev/sda',
    model: 'Disk 9',
    serial: 'wwn:0x5000',
    size_bytes: 2 ** 30,
    tran: 'sata',
  })
})

test("a path of this machine is nobody else's business", () => {
  const { choice } = FACTS
  const image = { ...choice.image, location: '/var/lib/flasher/images/debian.img' }
  assert.is(startReport({ ...FACTS, choice: { ...choice, image } }).image?.src, null)
})

test('each event that says something new is a report that the server takes', () => {
  let last = startReport(FACTS)
  const phases = [last.phase]
  const events: readonly FlashEvent[] = [
    { event: 'started', total_bytes: 200 },
    writing('write', 0),
    writing('write', 200),
    writing('verify', 200),
    { event: 'synced' },
    { event: 'partprobed' },
  ]
  for (const event of events) {
    const report = nextReport(last, event)
    if (report === null) continue
    last = report
    phases.push(report.phase)
    assert.ok(ProgressSchema.safeParse(report).success, JSON.stringify(report))
  }
  last = reportPhase(last, 'uefi')
  const end = endReport(FACTS, last, FAILED)
  assert.equal(phases, ['started', 'write', 'write', 'verify', 'sync'])
  assert.ok(ProgressSchema.safeParse(end).success)
  assert.equal([end.phase, end.reason?.length, end.mode], ['failed', 500, 'flash'])
})

test('what became of a comparison is reported when it is known, and again at the end', () => {
  const before = startReport(FACTS)
  const delta = 'mostly-different'
  const first = nextReport(before, Object.assign(writing('write', 0), { delta }))
  assert.is(first?.delta, delta)
  assert.not.ok('delta' in (nextReport(before, writing('write', 0)) ?? {}))
  const done = { kind: 'done', bytesWritten: 200, bytesKept: 0, verified: true } as const
  assert.is(endReport(FACTS, before, { ...done, delta }).delta, delta)
  assert.not.ok('delta' in endReport(FACTS, before, { ...done, delta: null }))
  assert.is(ProgressSchema.parse({ ...first, delta: 'something new' }).delta, null)
})

test('milestones are quarters, each of them once', () => {
  const seen: (string | null)[] = []
  let last = startReport(FACTS)
  for (const event of [0, 49, 50, 51, 199, 200].map((bytes) => writing('write', bytes))) {
    const report = nextReport(last, event)
    if (report === null) continue
    seen.push(milestone(last, report, null))
    last = report
  }
  assert.equal(seen, [null, null, 'write 25%', null, 'write 75%', 'write 100%'])
})

test('without a total, what is read of the image counts', () => {
  const half = { ...startReport(FACTS), phase: 'write' as const, bytes_read: 50 }
  assert.is(milestone(startReport(FACTS), half, 100), 'download 50%')
  assert.is(milestone(startReport(FACTS), half, null), null)
})

test.run()
