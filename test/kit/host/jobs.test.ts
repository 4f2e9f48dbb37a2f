import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { Fault } from '#kit/foundation/fault.ts'
import { createJobs, openJobRecords, QUEUED } from '#kit/host/jobs.ts'
import { inTurnOf } from '#kit/host/queue.ts'
import { createRecords } from '#kit/host/records.ts'

const State = z.object({
  status: z.enum(['queued', 'running', 'completed', 'failed', 'cancelled']),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  error: z.string().nullable(),
  count: z.number(),
})
type Counted = z.infer<typeof State>

const test = suite('jobs')
const AT = '2026-11-21T06:55:53.000Z'
const now = () => new Date(AT)
const START: Counted = { ...QUEUED, count: 0 }
const STOP = new Fault('cancelled', 'no longer wanted')

/** Jobs that run until they are released or cancelled, and what happened to them in order. */
function createFixture(parallel: number, maxListed = 10) {
  const changes: string[] = []
  const jobs = createJobs<Counted>({
    parallel,
    maxListed,
    now,
    onChange: ({ count, status }) => void changes.push(`${count} ${status}`),
  })
  const gates = new Map<number, PromiseWithResolvers<void>>()
  function start(count: number) {
    const gate = Promise.withResolvers<void>()
    gates.set(count, gate)
    return jobs.start(
      `job-${count}`,
      { ...START, count },
      {
        run: ({ signal }) =>
          Promise.race([
            gate.promise,
            new Promise<void>((_, reject) =>
              signal.addEventListener('abort', () => reject(new Error('interrupted'))),
            ),
          ]),
      },
    )
  }
  const statuses = () => jobs.list().map(({ key, state }) => `${key} ${state.status}`)
  return { jobs, start, changes, statuses, release: (count: number) => gates.get(count)?.resolve() }
}

test('jobs run in the order of their starts, at most so many at once, the first ones at once', async () => {
  const { jobs, start, statuses, release } = createFixture(2)
  const [one, , three] = [start(1), start(2), start(3)]
  assert.equal(statuses(), ['job-3 queued', 'job-2 running', 'job-1 running'])
  release(1)
  await one.ended
  assert.equal(statuses(), ['job-3 running', 'job-2 running', 'job-1 completed'])
  assert.equal(one.state, {
    count: 1,
    status: 'completed',
    started_at: AT,
    finished_at: AT,
    error: null,
  })
  release(3)
  await three.ended
  await jobs[Symbol.asyncDispose]()
})

test('work that is not listed waits for its turn, and its failure keeps nobody else', async () => {
  const { jobs, start, release } = createFixture(1)
  const one = start(1)
  const failing = jobs.enqueue(() => Promise.reject(new Error('broken')))
  const after = jobs.enqueue(async () => one.state.status)
  release(1)
  assert.match(await failing.catch(String), /broken/)
  assert.is(await after, 'completed')
})

test('a job that throws has failed with its words, and its outcome is recorded before it has ended', async () => {
  const { jobs } = createFixture(1)
  const seen: unknown[] = []
  const job = jobs.start('a', START, {
    async run(own) {
      own.state = { ...own.state, count: 7 }
      throw new Error('the disk is gone')
    },
    async onEnd({ state, failure }) {
      seen.push(state.status, String(failure))
      throw new Error('the journal is gone, too')
    },
  })
  await job.ended
  assert.equal(seen, ['failed', 'Error: the disk is gone'])
  assert.is(job.state.error, 'the disk is gone')
  assert.is(job.state.count, 7)
})

test('a queued job that is cancelled never runs; a running one is aborted, and waited for', async () => {
  const { jobs, start, changes } = createFixture(1)
  const [one, two] = [start(1), start(2)]
  assert.is((await jobs.cancel('job-2', STOP))?.state.status, 'cancelled')
  assert.is(two.state.started_at, null)
  assert.is((await jobs.cancel('job-1', STOP))?.state.error, 'no longer wanted')
  assert.is(one.failure, STOP)
  assert.is(await jobs.cancel('job-9', STOP), null)
  assert.is((await jobs.cancel('job-1', new Fault('misuse', 'again')))?.failure, STOP)
  await jobs.enqueue(async () => undefined)
  assert.equal(changes, ['1 queued', '1 running', '2 queued', '2 cancelled', '1 cancelled'])
})

test('a cancel that comes too late leaves the job completed', async () => {
  const { jobs } = createFixture(1)
  const gate = Promise.withResolvers<void>()
  jobs.start('a', START, { run: () => gate.promise })
  const cancelled = jobs.cancel('a', STOP)
  gate.resolve()
  assert.is((await cancelled)?.state.status, 'completed')
  assert.is((await cancelled)?.failure, null)
})

test('the oldest jobs that have ended are forgotten; those under way never', async () => {
  const { jobs, start, statuses, release } = createFixture(1, 2)
  start(1)
  const two = start(2)
  start(3)
  assert.is(statuses().length, 3)
  release(1)
  release(2)
  await two.ended
  start(4)
  assert.equal(statuses(), ['job-4 queued', 'job-3 running'])
  await jobs[Symbol.asyncDispose]()
  assert.equal(statuses(), ['job-4 cancelled', 'job-3 cancelled'])
})

test('after a restart all are found; what was running or queued is marked failed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-jobs-'))
  const open = async () => openJobRecords(createRecords(folder), State, now())
  try {
    const storage = createRecords(folder)
    const records = await openJobRecords(storage, State, now())
    const before = createJobs<Counted>({ parallel: 1, maxListed: 9, now, records })
    await before.start('forgotten', START, { run: async () => {} }).ended
    await before.start('done', START, { run: async () => {} }).ended
    before.start('running', START, { run: () => new Promise(() => {}) })
    before.start('queued', START, { run: async () => {} })
    before.forget('forgotten')
    // The process ends here, as a crash would end it: after what it has written so far.
    await records[Symbol.asyncDispose]()
    await storage.setItem('strange', 'no state')

    const found = await open()
    assert.equal(found.cutOff.toSorted(), ['queued', 'running'])
    await using after = createJobs<Counted>({ parallel: 1, maxListed: 9, now, records: found })
    const { state, ended } = after.find('running') ?? { state: null, ended: null }
    await ended
    assert.is(state?.status, 'failed')
    assert.match(state?.error ?? '', /interrupted by a restart/)
    assert.is(after.find('queued')?.state.status, 'failed')
    assert.is(after.find('done')?.state.status, 'completed')
    assert.is(after.list().length, 3)
    assert.is((await after.cancel('running', STOP))?.state.status, 'failed')
    await after.start('running', START, { run: async () => {} }).ended
    await after[Symbol.asyncDispose]()
    const again = await open()
    assert.equal(again.cutOff, [])
    assert.is(new Map(again.before).get('running')?.status, 'completed')
  } finally {
    await rm(folder, { recursive: true })
  }
})

const MODULE = new URL('../../../runtime/kit/host/watch.ts', import.meta.url).href

test('a program that waits for nothing else stays for it', () => {
  const script = `
    import { linger } from ${JSON.stringify(MODULE)}
    await linger(50, new AbortController().signal)
    await linger(60_000, AbortSignal.abort())
    console.log('stayed')`
  const options = { encoding: 'utf8' } as const
  const ended = spawnSync(process.execPath, ['--input-type=module', '--eval', script], options)
  assert.equal([ended.status, ended.stdout], [0, 'stayed\n'])
})

test('work on one file is done in turn, whatever becomes of it, and other files do not wait', async () => {
  const order: string[] = []
  const gate = Promise.withResolvers<null>()
  const first = inTurnOf('/state/a', async () => {
    await gate.promise
    order.push('first')
    throw new Error('it cannot be written')
  })
  const second = inTurnOf('/state/a', async () => void order.push('second'))
  await inTurnOf('/state/b', async () => void order.push('other'))
  gate.resolve(null)
  assert.is(await first.catch((thrown: unknown) => String(thrown)), 'Error: it cannot be written')
  await second
  assert.equal(order, ['other', 'first', 'second'])
})

test.run()
