import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  addReport,
  dropReport,
  EMPTY_QUEUE,
  isEnd,
  REPORT_EVERY_MS,
  untilDue,
  type ReportQueue,
} from '#engine/flash/rules/run-report.ts'
import type { ProgressPost, RunPhase } from '#engine/inventory/rules/run.ts'

const test = suite('reports')

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
