/** The program that runs the tests: one that fails by chance is named, one that fails is listed last. */
import { spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createStopwatch, describeSlowest } from './support/runner/durations.ts'
import { createPrinter } from './support/runner/printer.ts'
import { SELECTIONS } from './support/runner/selections.ts'

const test = suite('test runner')
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'flasher-runner-'))
test.after(() => fs.rmSync(folder, { recursive: true, force: true }))

const FILES: Record<string, string> = {
  passes: '',
  chance: `const seen = import.meta.filename + '.seen'
    if (!fs.existsSync(seen)) { fs.writeFileSync(seen, ''); throw new Error('only once') }`,
  fails: `throw new Error('each time')`,
  slow: 'await new Promise((resolve) => setTimeout(resolve, 500))',
  'also-slow': 'await new Promise((resolve) => setTimeout(resolve, 500))',
  'ends-once': `const seen = import.meta.filename + '.seen'
    if (!fs.existsSync(seen)) { fs.writeFileSync(seen, ''); process.exit(3) }`,
  silent: 'await new Promise((resolve) => setTimeout(resolve, 60_000))',
  waits: `(await import('node:child_process')).spawnSync('sleep', ['61'])`,
  keeps: `const { spawn } = await import('node:child_process')
    spawn('sleep', ['63'], { stdio: 'ignore' })
    setInterval(() => console.log('and so on'), 300)`,
  leaves: `const { spawn } = await import('node:child_process')
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
  const argv = [program, folder, ...patterns]
  const { status, stdout } = spawnSync(process.execPath, argv, { cwd, env })
  return { status, lines: stdout.toString().trimEnd().split('\n') }
}

test('each test file is in one selection', () => {
  const patterns = Object.values(SELECTIONS).map((pattern) => new RegExp(pattern, 'i'))
  const files = fs.globSync('**/*.test.ts', { cwd: import.meta.dirname })
  const odd = files.filter((file) => patterns.filter((each) => each.test(file)).length !== 1)
  assert.ok(files.length > 600)
  assert.equal(odd, [])
})

test('the time of a file ends where the next one begins', () => {
  let clock = 0
  const stopwatch = createStopwatch(() => clock)
  stopwatch.read('one.te')
  clock = 1000
  stopwatch.read('st.ts\n suite  • •   (2 / 2)\n')
  clock = 5500
  stopwatch.read('two.test.ts\n')
  clock = 5900
  const durations = stopwatch.end()
  assert.equal(durations, [
    { file: 'one.test.ts', seconds: 4.5 },
    { file: 'two.test.ts', seconds: 0.4 },
  ])
  assert.equal(describeSlowest(durations, 5), ['    5 s  one.test.ts'])
})

test('beside another run each file is printed whole, with the time that a slow one took', () => {
  let clock = 0
  const printed: string[] = []
  const write = (text: string) => printed.push(text)
  const printer = createPrinter(write, { isAlone: false, now: () => clock })
  printer.print('one.test.ts\n (1 / 1)\n')
  clock = 65_000
  printer.print('two.test.ts\n (2')
  clock += 400
  printer.print(' / 2)')
  printer.end()
  assert.is(
    printed.join(''),
    'one.test.ts\n (1 / 1)\n  65 s, until minute 1\ntwo.test.ts\n (2 / 2)',
  )
})

test('what passes when it is run alone is named and does not fail the run', () => {
  const { status, lines } = run('^passes', '^chance')
  assert.is(status, 0)
  assert.is(lines.at(-1), '2 passed, 0 failed')
  assert.ok(lines.includes('FLAKY chance.test.ts: it passed when run alone'))
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
  assert.match(end.join('\n'), /FAIL {2}before of before\nError: not prepared/)
})

test('a file that ends the run of all others is never taken for chance, and they have their turn', () => {
  const { status, lines } = run('^(also-slow|breaks|passes)')
  assert.is(status, 1)
  assert.is(lines.at(-1), '2 passed, 1 failed')
  assert.ok(lines.includes('FAILED breaks.test.ts'))
  const plain = lines.map((line) => stripVTControlCharacters(line).trim())
  for (const name of ['also-slow', 'passes']) {
    assert.is(plain.filter((line) => line === `${name}.test.ts`).length, 1, name)
  }
})

test('a file that is silent for too long ends with what it started, and the others have their turn', () => {
  const { status, lines } = run('^(also-slow|passes|silent)', '^(passes|waits)')
  assert.is(status, 1)
  assert.is(lines.at(-1), '3 passed, 2 failed')
  assert.ok(lines.includes('FAILED silent.test.ts'))
  assert.ok(lines.includes('Ended: 12 s passed without a word. What ran then:'))
  const end = lines.slice(lines.indexOf('FAILED waits.test.ts')).join('\n')
  assert.match(end, /\d+ of \d+, S: sleep 61\n/)
})

test('a run that is ended by a limit of time says what it was at', async () => {
  const program = path.join(import.meta.dirname, 'support/runner/run.ts')
  const cwd = path.join(import.meta.dirname, '..')
  const argv = [program, folder, '^(passes|silent)', '^also-slow']
  const child = spawn(process.execPath, argv, { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  for await (const part of child.stdout.setEncoding('utf8')) {
    text += part
    if (/passes\.test\.ts/.test(text)) child.kill('SIGTERM')
  }
  const lines = text.trimEnd().split('\n')
  assert.is(lines.at(-1), '0 passed, 2 failed')
  assert.ok(lines.includes('The run was ended before its end'))
  assert.ok(lines.includes('Ended: somebody wanted an end. What ran then:'))
  assert.ok(lines.includes('FAILED silent.test.ts'))
  assert.not.match(text, /also-slow/)
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
  const { status, lines } = run(String.raw`^(ends-once|passes)\.test\.ts$`)
  assert.is(status, 0)
  assert.is(lines.at(-1), '2 passed, 0 failed')
  assert.ok(lines.includes('FLAKY ends-once.test.ts: it passed when run alone'))
})

test('a pattern that no file matches is not a success', () => {
  assert.is(run('^none').status, 1)
})

test('what runs side by side is counted together, and printed file by file', () => {
  const { status, lines } = run('^(slow|passes)', '+', '^(also-slow|fails)')
  assert.is(status, 1)
  assert.is(lines.at(-1), '3 passed, 1 failed')
  const plain = lines.map((line) => stripVTControlCharacters(line).trim())
  for (const name of ['slow', 'also-slow']) {
    assert.is(plain[plain.indexOf(`${name}.test.ts`) + 1], `${name}  •   (1 / 1)`)
  }
})

test.run()
