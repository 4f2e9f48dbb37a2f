import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FlashEvent } from '#engine/flash/rules/flash-plan.ts'
import {
  addReport,
  dropReport,
  EMPTY_QUEUE,
  endReport,
  isEnd,
  milestone,
  nextReport,
  nextStage,
  REPORT_EVERY_MS,
  reportPhase,
  type ReportQueue,
  type RunFacts,
  startReport,
  untilDue,
} from '#engine/flash/rules/run-report.ts'
import { type ProgressPost, ProgressSchema, type RunPhase } from '#engine/inventory/rules/run.ts'

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

const ERASES = { isFirst: true, isBlank: true } as const
const FILLS = { isFirst: true, isBlank: false } as const
const ELSEWHERE = { isFirst: false, isBlank: false } as const

for (const [from, write, begun, confirmed] of [
  ['checking', ERASES, 'begun', 'writing'],
  ['checking', ELSEWHERE, 'begun', 'begun'],
  ['begun', ERASES, 'begun', 'writing'],
  ['writing', ELSEWHERE, 'writing', 'writing'],
  ['writing', FILLS, 'closing', 'closing'],
  ['closing', ERASES, 'closing', 'writing'],
  ['written', ERASES, 'written', 'writing'],
] as const) {
  test(`${from}: a write that ${write.isBlank ? 'erases' : 'fills'}, first: ${write.isFirst}`, () => {
    const stages = [false, true].map((isConfirmed) => nextStage(from, { ...write, isConfirmed }))
    assert.equal(stages, [begun, confirmed])
  })
}

const post = (phase: RunPhase, bytes_written = 0): ProgressPost => ({
  run: 'aaaaaaaa-1',
  phase,
  bytes_read: 0,
  bytes_written,
  total_bytes: null,
  rate: null,
  eta_seconds: null,
})
const shown = ({ waiting }: ReportQueue) =>
  waiting.map(({ phase, bytes_written }) => `${phase} ${bytes_written}`)

test('news of a phase replaces what waits of it; other phases stay', () => {
  const reports = [post('started'), post('write', 1), post('write', 2), post('verify', 1)]
  const queue = reports.reduce(addReport, EMPTY_QUEUE)
  assert.equal(shown(queue), ['started 0', 'write 2', 'verify 1'])
})

test('a new phase goes out at once, more of it after two seconds', () => {
  const first = addReport(EMPTY_QUEUE, post('write', 1))
  assert.is(untilDue(first, 100), 0)
  const sent = dropReport(first, first.waiting[0] ?? post('write'), 100)
  assert.is(untilDue(sent, 100), null)
  const more = addReport(sent, post('write', 2))
  assert.is(untilDue(more, 100), REPORT_EVERY_MS)
  assert.is(untilDue(more, 100 + REPORT_EVERY_MS), 0)
  assert.is(untilDue(addReport(sent, post('verify', 0)), 100), 0)
  assert.is(untilDue(addReport(sent, post('failed', 0)), 100), 0)
})

test('what came while one was under way is not dropped with it', () => {
  const first = addReport(EMPTY_QUEUE, post('write', 1))
  const later = addReport(first, post('write', 2))
  assert.equal(shown(dropReport(later, first.waiting[0] ?? post('write'), 0)), ['write 2'])
})

test('an end is the last word', () => {
  const queue = [post('done', 5), post('write', 6)].reduce(addReport, EMPTY_QUEUE)
  assert.equal(shown(queue), ['done 5'])
})

test('numbers that are none are left out', () => {
  const odd = { ...post('write'), rate: Number.NaN, eta_seconds: Infinity }
  const [report] = addReport(EMPTY_QUEUE, odd).waiting
  assert.equal([report?.rate, report?.eta_seconds], [null, null])
})

test('whatever the order of news and sendings, every phase goes out and the end comes last', () => {
  const phases: readonly RunPhase[] = ['started', 'write', 'verify', 'sync', 'uefi', 'done']
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 60 }), (steps) => {
      let queue = EMPTY_QUEUE
      let at = 0
      const out: RunPhase[] = []
      const send = () => {
        const [next] = queue.waiting
        if (next === undefined) return
        out.push(next.phase)
        queue = dropReport(queue, next, 0)
      }
      for (const sends of steps) {
        if (sends) send()
        else {
          queue = addReport(queue, post(phases[Math.floor(at / 3)] ?? 'done', at))
          at += 1
        }
      }
      queue = addReport(queue, post('done', 99))
      while (queue.waiting.length > 0) send()
      assert.is(out.filter((phase) => isEnd({ phase })).length <= 2, true)
      assert.is(out.at(-1), 'done')
      const told = new Set(out)
      for (const phase of phases.slice(0, Math.ceil(at / 3))) assert.is(told.has(phase), true)
    }),
  )
})

test.run()
