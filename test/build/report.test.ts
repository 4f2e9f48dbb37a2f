/** A build that is interrupted on its terminal. */
import { existsSync, mkdtempDisposableSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { EXITED, openTerminal } from '../support/terminal/tmux.ts'

const test = suite('report')
const urlOf = (file: string) => JSON.stringify(new URL(`../../build/${file}`, import.meta.url).href)

/** What is typed is not echoed into the screen, and uvu's FORCE_COLOR overrules nothing. */
const quietly = (argv: readonly string[]) => [
  'sh',
  '-c',
  'trap : INT; stty -echo; unset FORCE_COLOR; "$@"',
  'sh',
  process.execPath,
  ...argv,
]

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
