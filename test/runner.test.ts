/** The program that runs the tests: one that fails by chance is named, one that fails is listed last. */
import { spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { describeSlowest } from '#test/support/runner/durations.ts'
import { planJobs, takeJob, type Job } from '#test/support/runner/queue.ts'
import { SELECTIONS } from '#test/support/runner/selections.ts'

const test = suite('test runner')
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'flasher-runner-'))
test.after(() => fs.rmSync(folder, { recursive: true, force: true }))

const FILES: Record<string, string> = {
  passes: '',
  'chance-1': `const seen = import.meta.filename + '.seen'
    if (!fs.existsSync(seen)) { fs.writeFileSync(seen, ''); throw new Error('only once') }`,
  fails: `throw new Error('each time')`,
  'at-once': `throw new Error('at once')`,
  'p-of-a-pair': '',
  'b-of-a-pair': 'process.exit(3)',
  slow: 'await new Promise((resolve) => setTimeout(resolve, 500))',
  'also-slow': 'await new Promise((resolve) => setTimeout(resolve, 500))',
  'ends-once-1': `const seen = import.meta.filename + '.seen'
    if (!fs.existsSync(seen)) { fs.writeFileSync(seen, ''); process.exit(3) }`,
  silent: 'await new Promise((resolve) => setTimeout(resolve, 60_000))',
  'waits-1': `(await import('node:child_process')).spawnSync('sleep', ['61'])`,
  'keeps-1': `const { spawn } = await import('node:child_process')
    spawn('sleep', ['63'], { stdio: 'ignore' })
    setInterval(() => console.log('and so on'), 300)`,
  'leaves-1': `const { spawn } = await import('node:child_process')
    spawn('sleep', ['62'], { stdio: 'inherit' }).unref()`,
  breaks: `setTimeout(() => { throw new Error('outside of any test') }, 1)
    await new Promise((resolve) => setTimeout(resolve, 60_000))`,
}

/** Its tests never have their turn, which uvu counts as `0 / 1` without failing the run. */
const FAILS_BEFORE = `import { suite } from ${JSON.stringify(import.meta.resolve('uvu'))}
  const test = suite('of before')
  test.before(() => { throw new Error('not prepared') })
  test('of before', () => {})
  test.run()`

test.before(() => {
  fs.writeFileSync(path.join(folder, 'before.test.ts'), FAILS_BEFORE)
  for (const [name, body] of Object.entries(FILES)) {
    const text = `import fs from 'node:fs'
      import { suite } from ${JSON.stringify(import.meta.resolve('uvu'))}
      const test = suite('${name}')
      test('of ${name}', async () => { ${body} })
      test.run()`
    fs.writeFileSync(path.join(folder, `${name}.test.ts`), text)
  }
})

function run(...patterns: string[]) {
  const program = path.join(import.meta.dirname, 'support/runner/run.ts')
  const cwd = path.join(import.meta.dirname, '..')
  const env = { ...process.env, FLASHER_TEST_SILENCE: '12000' }
  const argv = [program, '--folder', folder, ...patterns]
  const { status, stdout } = spawnSync(process.execPath, argv, { cwd, env })
  return { status, lines: stdout.toString().trimEnd().split('\n') }
}

test('each test file is in one selection', () => {
  const patterns = Object.values(SELECTIONS).map((pattern) => new RegExp(pattern, 'i'))
  const files = fs.globSync('**/*.test.ts', { cwd: import.meta.dirname })
  const odd = files.filter((file) => patterns.filter((each) => each.test(file)).length !== 1)
  assert.ok(files.length > 300)
  assert.equal(odd, [])
})

test('boots begin first and wait for each other, then the longest file, and pure files share processes', () => {
  const durations = new Map([
    ['vm/long.test.ts', 90],
    ['vm/short.test.ts', 30],
    ['server/slow.test.ts', 120],
    ['server/slower.test.ts', 150],
  ])
  const files = [...durations.keys(), 'a.test.ts', 'b.test.ts', 'server/new.test.ts']
  const waiting = planJobs(files, { durations, isPure: (file) => file.length === 9 })
  assert.equal(
    waiting.map((job) => job.files.join(' ')),
    [
      'server/slower.test.ts',
      'server/slow.test.ts',
      'vm/long.test.ts',
      'vm/short.test.ts',
      'a.test.ts b.test.ts',
      'server/new.test.ts',
    ],
  )
  const running: Job[] = []
  const slots = { all: 3, boots: 1 }
  for (let job = takeJob(waiting, running, slots); job !== null;) {
    running.push(job)
    job = takeJob(waiting, running, slots)
  }
  assert.equal(
    running.map((job) => job.files[0]),
    ['vm/long.test.ts', 'server/slower.test.ts', 'server/slow.test.ts'],
  )
  assert.is(takeJob(waiting, running.slice(0, 2), slots)?.files[0], 'a.test.ts')
  assert.is(takeJob(waiting, running.slice(1), slots)?.files[0], 'vm/short.test.ts')
  assert.is(takeJob(waiting, running, slots), null)
})

test('the slowest files are named with the time that they took and the processor gave', () => {
  const lines = describeSlowest(
    [
      { file: 'quick.test.ts', seconds: 0.4, processorSeconds: 0.2 },
      { file: 'ended.test.ts', seconds: 12, processorSeconds: null },
      { file: 'waits-1.test.ts', seconds: 61.2, processorSeconds: 3.1 },
    ],
    5,
  )
  assert.equal(lines, [
    '   61 s     3 s CPU  waits-1.test.ts',
    '   12 s     ? s CPU  ended.test.ts',
  ])
})

test('what passes when it is run alone is named and does not fail the run', () => {
  const { status, lines } = run('^passes', '^chance')
  assert.is(status, 0)
  assert.is(lines.at(-1), '2 passed, 0 failed')
  assert.ok(lines.includes('FLAKY chance-1.test.ts: it passed when run alone'))
})

test('what fails again is listed at the end, after the other patterns had their turn', () => {
  const { status, lines } = run('^fails', '^passes')
  assert.is(status, 1)
  assert.is(lines.at(-1), '1 passed, 1 failed')
  const end = lines.slice(lines.indexOf('FAILED fails.test.ts')).join('\n')
  assert.match(end, 'each time')
})

test('a file whose preparation fails each time is never taken for chance', () => {
  const { status, lines } = run('^before')
  assert.is(status, 1)
  assert.is(lines.at(-1), '0 passed, 1 failed')
  const end = lines.slice(lines.indexOf('FAILED before.test.ts'))
  assert.match(end.join('\n'), /FAIL: before of before\nError: not prepared/)
})

test('a file that ends its process is never taken for chance, and the others have their turn', () => {
  const { status, lines } = run('^(also-slow|breaks|passes)')
  assert.is(status, 1)
  assert.is(lines.at(-1), '2 passed, 1 failed')
  assert.ok(lines.includes('FAILED breaks.test.ts'))
})

test('a file that shares a process with one that ends it has its turn', () => {
  const { status, lines } = run('^[bp]-of-a-pair')
  assert.is(status, 1)
  assert.is(lines.at(-1), '1 passed, 1 failed')
  assert.ok(lines.includes('FAILED b-of-a-pair.test.ts'))
})

test('a failure is named in the moment it happens', () => {
  const { lines } = run('^at-once')
  const named = lines.indexOf('at-once.test.ts: FAIL: "of at-once": Error: at once')
  assert.ok(named !== -1 && named < lines.indexOf('FAILED at-once.test.ts'))
})

test('a file that is silent for too long ends with what it started, and the others have their turn', () => {
  const { status, lines } = run('^(also-slow|passes|silent)', '^(passes|waits)')
  assert.is(status, 1)
  assert.is(lines.at(-1), '2 passed, 2 failed')
  assert.ok(lines.includes('FAILED silent.test.ts'))
  assert.ok(lines.includes('Ended: 12 s passed without a word. What ran then:'))
  const end = lines.slice(lines.indexOf('FAILED waits-1.test.ts')).join('\n')
  assert.match(end, /\d+ of \d+, S: sleep 61\n/)
})

test('a run that is ended by a limit of time says what it was at', async () => {
  const program = path.join(import.meta.dirname, 'support/runner/run.ts')
  const cwd = path.join(import.meta.dirname, '..')
  const argv = [program, '--folder', folder, '^(fails|silent)']
  const child = spawn(process.execPath, argv, { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  for await (const part of child.stdout.setEncoding('utf8')) {
    text += part
    if (/each time/.test(text)) child.kill('SIGTERM')
  }
  const lines = text.trimEnd().split('\n')
  assert.is(lines.at(-1), '0 passed, 3 failed')
  assert.ok(lines.includes('The run was ended before its end'))
  assert.ok(lines.includes('Ended: somebody wanted an end. What ran then:'))
  assert.ok(lines.includes('FAILED silent.test.ts'))
})

test('a child that a test did not end keeps nobody waiting, and is named', () => {
  const { status, lines } = run('^keeps', '^passes')
  assert.is(status, 0)
  assert.is(lines.at(-1), '2 passed, 0 failed')
  const named = lines.slice(
    lines.indexOf('Ended: its tests were over, and it was not. What ran then:'),
  )
  assert.match(named.join('\n'), /\d+ of \d+, S: sleep 63\n/)
})

test('a program that a test left behind keeps nobody waiting, and is named', () => {
  const { status, lines } = run('^leaves')
  assert.is(status, 0)
  assert.is(lines.at(-1), '1 passed, 0 failed')
  const named = lines.slice(lines.indexOf('Programs that outlived their tests:')).join('\n')
  assert.match(named, /\d+ of \d+, S: sleep 62\n/)
})

test('a file that ended the run by chance is named, and fails nothing', () => {
  const { status, lines } = run(String.raw`^(ends-once-1|passes)\.test\.ts$`)
  assert.is(status, 0)
  assert.is(lines.at(-1), '2 passed, 0 failed')
  assert.ok(lines.includes('FLAKY ends-once-1.test.ts: it passed when run alone'))
})

test('a pattern that no file matches is not a success', () => {
  assert.is(run('^none').status, 1)
})

test.run()
