/** What a build looks like: in a log, on a terminal, and when it is interrupted there. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempDisposableSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { EXITED, openTerminal } from '#test/support/terminal/tmux.ts'

const test = suite('report')
const urlOf = (file: string) => JSON.stringify(new URL(`../../build/${file}`, import.meta.url).href)

/** Two steps and a file, reported as by a build; the second step lasts until a line is typed. */
const PROGRAM = `
const { createVoice } = await import(${urlOf('voice/voice.ts')})
const { createTextReport } = await import(${urlOf('report.ts')})
const step = (name, says) => ({ name, says, argv: [], inputs: [], makes: [] })
const report = createTextReport({
  voice: createVoice({ stdout: process.stdout, stderr: process.stderr, env: process.env }),
  title: 'Flasher 1.2.3: usb-pc at level dev',
  steps: [step('tools', 'programs'), step('tree', 'root')],
  durations: { tree: 60 },
})
report.say({ event: 'cached', step: 'tools', says: 'programs', bytes: 1_600_000 })
report.say({ event: 'started', step: 'tree', says: 'root', log: '/log' })
if (process.stdin.isTTY) await new Promise((done) => process.stdin.once('data', done))
report.say({ event: 'made', step: 'tree', says: 'root', seconds: 64.2, bytes: 612_400_000 })
report.finish([{ asset: 'flasher.iso', bytes: 189_800_000, digest: '', seconds: 64.2 }], '/srv/dist')
process.exit()`
const ARGV = ['--input-type=module', '--eval', PROGRAM]

/** What is typed is not echoed into the screen, and uvu's FORCE_COLOR overrules nothing. */
const quietly = (argv: readonly string[]) => [
  'sh',
  '-c',
  'trap : INT; stty -echo; unset FORCE_COLOR; "$@"',
  'sh',
  process.execPath,
  ...argv,
]

test('a log has plain lines: no colour, nothing that moves, no box', () => {
  const env = { ...process.env, FORCE_COLOR: undefined }
  const said = execFileSync(process.execPath, ARGV, { encoding: 'utf8', input: '', env })
  assert.equal(said.replace(/in \d\S* s,/, 'in 1 s,').split('\n'), [
    'Flasher 1.2.3: usb-pc at level dev',
    '✔ tools          programs                                      cached    1.6 MB',
    '· tree           root: step 2 of 2, about 1 min 00 s left',
    '✔ tree           root                                      1 min 04 s  612.4 MB',
    '✔ 2 steps in 1 s, 1 of them from the cache',
    '/srv/dist:',
    '  File              Size         Time',
    '  flasher.iso   189.8 MB   1 min 04 s',
    '',
    '  with checksums, package lists and bills of materials',
    '',
  ])
})

test('on a terminal the line of a step moves, and leaves no trace', async () => {
  await using terminal = await openTerminal(quietly(ARGV))
  const line = / tree {11}root {37} {6}\d:\d\d {2}\d:\d\d left( {3}2\/2)?$/m.source
  const before = await terminal.waitFor(new RegExp(`^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]${line}`, 'm'))
  const mark = before.find((text) => text.includes('tree'))?.charAt(0) ?? ''
  await terminal.waitFor(new RegExp(`^[^✔${mark}]${line}`, 'm'))
  await terminal.press('Enter')
  const screen = await terminal.waitFor(`${EXITED}0`)
  const text = screen.join('\n')
  assert.match(text, /^✔ tree {11}root .*1 min 04 s {2}612\.4 MB$/m)
  assert.match(text, /^╭.*\/srv\/dist.*╮$/m)
  assert.match(text, /^│ {2}flasher\.iso {3}189\.8 MB {3}1 min 04 s +│$/m)
  assert.not.match(text, 'left')
})

for (const [name, value] of [
  ['CI', 'true'],
  ['TERM', 'dumb'],
] as const) {
  test(`${name}=${value} makes a terminal a log`, async () => {
    await using terminal = await openTerminal(quietly(ARGV), {
      env: { [name]: value },
    })
    await terminal.waitFor(/^· tree {11}root: step 2 of 2/m)
    await terminal.press('Enter')
    assert.match((await terminal.waitFor(`${EXITED}0`)).join('\n'), /^ {2}flasher\.iso/m)
  })
}

test('NO_COLOR takes the colours away, and nothing else', async () => {
  const env = { NO_COLOR: '1' }
  await using terminal = await openTerminal(quietly(ARGV), { env })
  await terminal.waitFor(/^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] tree/m)
  await terminal.press('Enter')
  await terminal.waitFor(`${EXITED}0`)
  assert.not.match(await terminal.painted(), '\u001B[3')
})

const SCRIPT = `
const { runScript } = await import(${urlOf('script.ts')})
const { runSteps } = await import(${urlOf('run.ts')})
const [checkout, cache] = process.argv.slice(1)
const step = { name: 'endless', says: 'waits', inputs: [], makes: ['file'] }
const argv = ['sh', '-c', 'trap "exit 3" TERM; echo $$ >pid; while :; do sleep 0.1; done']
await runScript({
  name: 'build:endless',
  read: () => ({}),
  async run(_options, { voice, signal }) {
    const say = ({ event, why }) => voice.say.log(event + ' ' + (why ?? ''))
    await runSteps({ steps: [{ ...step, argv }], checkout, cache, say, signal })
    return 1
  },
})`

test('Ctrl-C ends the step and everything that it started, and the script with 130', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-report-'))
  const argv = ['--input-type=module', '--eval', SCRIPT, folder.path, join(folder.path, 'cache')]
  await using terminal = await openTerminal(quietly(argv))
  await terminal.waitFor('started')
  const file = join(folder.path, 'pid')
  while (!existsSync(file) || !readFileSync(file, 'utf8').endsWith('\n')) await terminal.screen()
  await terminal.press('C-c')
  const screen = await terminal.waitFor(`${EXITED}130`)
  assert.match(screen.join('\n'), /^failed was interrupted$/m)
  assert.not.ok(existsSync(`/proc/${readFileSync(file, 'utf8').trim()}/exe`))
})

test.run()
