/** Steps that run, and steps that need not: real programs, a real cache in a folder of its own. */
import {
  existsSync,
  mkdtempDisposableSync,
  readFileSync,
  readdirSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { appendFileSync, cpSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { digestListing } from '#build/cache/digest.ts'
import type { BuildEvent } from '#build/progress.ts'
import { readDurations, runSteps, type RunOptions } from '#build/run.ts'
import type { Step } from '#build/steps/step.ts'

const test = suite('run')

/** Copies its input into a folder, and the folder's file on into a second step's. */
const STEPS: readonly Step[] = [
  {
    name: 'first',
    says: 'a folder',
    argv: ['sh', '-c', 'mkdir "$1" && cp source "$1/copy"', 'sh', '@first/folder'],
    inputs: ['source'],
    makes: ['folder'],
  },
  {
    name: 'second',
    says: 'a file',
    argv: ['sh', '-c', 'cat "$1/copy" "$1/copy" >"$2"', 'sh', '@first/folder', '@second/file'],
    inputs: ['@first/folder'],
    makes: ['file'],
  },
]

function openLab() {
  const folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-build-'))
  const checkout = join(folder.path, 'checkout')
  const cache = join(folder.path, 'cache')
  mkdirSync(checkout)
  const events: BuildEvent[] = []
  return {
    checkout,
    cache,
    events,
    source: join(checkout, 'source'),
    /** What happened, by step. */
    async run(steps: readonly Step[] = STEPS, more: Partial<RunOptions> = {}) {
      events.length = 0
      const outcome = await runSteps({
        steps,
        checkout,
        cache,
        pace: 'dev',
        say: (event) => events.push(event),
        ...more,
      })
      const told = events.filter(({ event }) => event !== 'started')
      return { outcome, told: told.map(({ event, step }) => `${step} ${event}`) }
    },
    [Symbol.dispose]: () => folder.remove(),
  }
}

test('runs once, and again only where an input changed', async () => {
  using lab = openLab()
  writeFileSync(lab.source, 'one')
  assert.equal((await lab.run()).told, ['first made', 'second made'])
  const { outcome, told } = await lab.run()
  assert.equal(told, ['first cached', 'second cached'])
  assert.ok(outcome.ok)
  assert.is(outcome.ok && readFileSync(outcome.pathOf('@second/file'), 'utf8'), 'oneone')
  writeFileSync(lab.source, 'two')
  assert.equal((await lab.run()).told, ['first made', 'second made'])
  writeFileSync(lab.source, 'one')
  assert.equal((await lab.run()).told, ['first cached', 'second cached'])
  assert.equal(Object.keys(await readDurations({ cache: lab.cache, pace: 'dev' })), [
    'first',
    'second',
  ])
})

test('a second checkout with the same contents builds nothing', async () => {
  using lab = openLab()
  writeFileSync(lab.source, 'one')
  await lab.run()
  const checkout = join(lab.checkout, '..', 'another')
  mkdirSync(checkout)
  writeFileSync(join(checkout, 'source'), 'one')
  const events: BuildEvent[] = []
  await runSteps({
    steps: STEPS,
    checkout,
    cache: lab.cache,
    pace: 'dev',
    say: (event) => events.push(event),
  })
  assert.equal(
    events.map(({ event }) => event),
    ['cached', 'cached'],
  )
})

const SPOILERS: Readonly<Record<string, (folder: string) => void>> = {
  'a file that grew': (folder) => appendFileSync(join(folder, 'folder/copy'), '!'),
  'a file of the same length, mode and date': (folder) => {
    const file = join(folder, 'folder/copy')
    const { atime, mtime } = statSync(file)
    writeFileSync(file, 'ONE')
    utimesSync(file, atime, mtime)
  },
  'a file too many': (folder) => writeFileSync(join(folder, 'folder/more'), ''),
  'all gone': (folder) => rmSync(folder, { recursive: true }),
  'a record that is none': (folder) => writeFileSync(`${folder}.json`, '{"folder":1'),
}

for (const [what, spoil] of Object.entries(SPOILERS)) {
  test(`a spoilt cache costs a rebuild: ${what}`, async () => {
    using lab = openLab()
    writeFileSync(lab.source, 'one')
    const before = await lab.run()
    assert.ok(before.outcome.ok)
    if (before.outcome.ok) spoil(before.outcome.pathOf('@first'))
    const { outcome, told } = await lab.run()
    // The second step's input is what it was, so what it made still is.
    assert.equal(told, ['first made', 'second cached'])
    assert.is(outcome.ok && readFileSync(outcome.pathOf('@first/folder/copy'), 'utf8'), 'one')
  })
}

test('a copy of the cache, with dates of its own, is as good', async () => {
  using lab = openLab()
  writeFileSync(lab.source, 'one')
  await lab.run()
  cpSync(lab.cache, `${lab.cache}.copy`, { recursive: true })
  rmSync(lab.cache, { recursive: true })
  renameSync(`${lab.cache}.copy`, lab.cache)
  assert.equal((await lab.run()).told, ['first cached', 'second cached'])
})

test('by content, not even rotten bits get through', async () => {
  using lab = openLab()
  writeFileSync(lab.source, 'one')
  const { outcome } = await lab.run()
  if (!outcome.ok) return assert.unreachable()
  const folder = outcome.pathOf('@first')
  writeFileSync(join(folder, 'folder/copy'), 'ONE')
  // A disk forgets bits without leaving a date: the record now says what the listing says.
  const record = JSON.parse(readFileSync(`${folder}.json`, 'utf8'))
  record.folder.listing = await digestListing(join(folder, 'folder'))
  writeFileSync(`${folder}.json`, JSON.stringify(record))
  assert.equal((await lab.run()).told, ['first cached', 'second cached'])
  const proven = await lab.run(STEPS, { proof: 'content' })
  assert.equal(proven.told, ['first made', 'second cached'])
})

test('a missing input is reported before anything runs', async () => {
  using lab = openLab()
  const message = await lab.run().then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : null),
  )
  assert.is(message, 'the step first reads source, which does not exist')
  assert.equal(lab.events, [])
})

test('two builders that share a folder share its lock', async () => {
  using lab = openLab()
  const shared = join(lab.cache, '../shared')
  const argv = ['sh', '-c', 'mkdir -p "$1" && echo >"$2"', 'sh', '%pool', '@pooled/file']
  const step: Step = { name: 'pooled', says: '', argv, inputs: [], makes: ['file'] }
  assert.ok((await lab.run([step], { shared })).outcome.ok)
  assert.ok(existsSync(join(shared, 'locks/pool')))
  assert.not.ok(existsSync(join(lab.cache, 'locks/pool')))
})

test('a spoilt result is made again', async () => {
  using lab = openLab()
  writeFileSync(lab.source, 'one')
  const { outcome } = await lab.run()
  if (outcome.ok) writeFileSync(outcome.pathOf('@second/file'), 'twotwo')
  assert.equal((await lab.run()).told, ['first cached', 'second made'])
})

test('a step that fails shows its last words and where the rest is', async () => {
  using lab = openLab()
  const broken: Step = {
    name: 'broken',
    says: 'nothing',
    argv: ['sh', '-c', 'seq 100; echo no room >&2; exit 3'],
    inputs: [],
    makes: ['file'],
  }
  const { outcome } = await lab.run([broken])
  assert.equal(outcome, { ok: false, step: 'broken' })
  const failure = lab.events.find(({ event }) => event === 'failed')
  assert.ok(failure?.event === 'failed')
  if (failure?.event !== 'failed') return
  assert.is(failure.why, 'ended with exit code 3')
  assert.is(failure.tail.at(-1), 'no room')
  assert.ok(failure.tail.length <= 25)
  assert.match(readFileSync(failure.log, 'utf8'), /^1$/m)
})

test('a step that did not make what it promised has failed', async () => {
  using lab = openLab()
  const lazy: Step = { name: 'lazy', says: '', argv: ['true'], inputs: [], makes: ['file'] }
  await lab.run([lazy])
  const failure = lab.events.find(({ event }) => event === 'failed')
  assert.is(failure?.event === 'failed' && failure.why, 'did not make file')
})

test('a program that is not there is a failure, not a crash', async () => {
  using lab = openLab()
  const step: Step = { name: 'odd', says: '', argv: ['no-such-program'], inputs: [], makes: [] }
  await lab.run([step])
  const failure = lab.events.find(({ event }) => event === 'failed')
  assert.match(failure?.event === 'failed' ? failure.why : '', /no-such-program did not start/)
})

test('an outcome tells its size, made or cached', async () => {
  using lab = openLab()
  writeFileSync(lab.source, 'one')
  const sizes = () => lab.events.flatMap((event) => ('bytes' in event ? [event.bytes] : []))
  await lab.run()
  assert.equal(sizes(), [3, 6])
  await lab.run()
  assert.equal(sizes(), [3, 6])
})

/** A program that is dead and not yet waited for has an empty command line. */
function isRunning(pid: number): boolean {
  const file = `/proc/${pid}/cmdline`
  return existsSync(file) && readFileSync(file, 'latin1') !== ''
}

test('an interrupted step leaves neither programs nor files behind', async () => {
  using lab = openLab()
  const pids = join(lab.checkout, 'pids')
  const step: Step = {
    name: 'endless',
    says: '',
    argv: ['sh', '-c', 'touch "$1"; sleep 1000 & echo $$ $! >pids; wait', 'sh', '@endless/file'],
    inputs: [],
    makes: ['file'],
  }
  const interruption = new AbortController()
  const running = lab.run([step], { signal: interruption.signal })
  while (!existsSync(pids) || !readFileSync(pids, 'utf8').endsWith('\n')) await pause(10)
  const started = readFileSync(pids, 'utf8').trim().split(' ').map(Number)
  assert.ok(started.every(isRunning))
  interruption.abort()
  const { outcome, told } = await running
  assert.equal(outcome, { ok: false, step: 'endless' })
  assert.equal(told, ['endless failed'])
  assert.equal(started.filter(isRunning), [])
  assert.equal(readdirSync(join(lab.cache, 'steps/endless')), [])
})

test('a few outcomes of a step are kept, the last ones', async () => {
  using lab = openLab()
  for (const text of ['1', '2', '3', '4', '5']) {
    writeFileSync(lab.source, text)
    await lab.run()
  }
  const kept = readdirSync(join(lab.cache, 'steps/first')).filter((name) => name.endsWith('.json'))
  assert.is(kept.length, 3)
  assert.ok(kept.every((name) => existsSync(join(lab.cache, 'steps/first', name.slice(0, -5)))))
  assert.equal((await lab.run()).told, ['first cached', 'second cached'])
})
test.run()
