import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '../../../runtime/core/foundation/fault.ts'
import { createShell } from '../../../runtime/services/host/shell.ts'

const test = suite('shell')
const shell = createShell({ env: { PATH: process.env['PATH'] } })
const codeOf = (thrown: unknown) => (thrown instanceof Fault ? thrown.code : thrown)

test('what a tool prints, and its exit code, are values', async () => {
  const script = 'printf ä; printf "oh: $1" >&2; exit 3'
  assert.equal(await shell.run(['sh', '-c', script, 'sh', '$HOME "; a\nb']), {
    exitCode: 3,
    stdout: 'ä',
    stderr: 'oh: $HOME "; a\nb',
  })
})

test('a tool gets its input, or none', async () => {
  assert.is((await shell.run(['cat'], { input: 'words' })).stdout, 'words')
  assert.is((await shell.run(['cat'])).stdout, '')
  // More than a pipe holds, for a tool that does not read.
  assert.is((await shell.run(['true'], { input: 'x'.repeat(2 ** 20) })).exitCode, 0)
})

test('a tool runs in the folder and the environment that it is given', async () => {
  const { stdout } = await shell.run(['sh', '-c', 'pwd; echo $LC_ALL $MORE'], {
    cwd: '/',
    env: { MORE: 'more' },
  })
  assert.is(stdout, '/\nC.UTF-8 more\n')
})

test('a tool that takes too long, or is aborted, is ended', async () => {
  assert.is.not((await shell.run(['sleep', '600'], { timeout: 50 })).exitCode, 0)
  const aborting = new AbortController()
  const running = shell.run(['sleep', '600'], { signal: aborting.signal })
  aborting.abort()
  assert.is.not((await running).exitCode, 0)
})

test('a tool that is not installed is a Fault, and so is one that was to succeed', async () => {
  assert.is(await shell.run(['no-such-tool']).catch(codeOf), 'tool-missing')
  assert.is(await shell.require(['false']).catch(codeOf), 'tool-failed')
})

test.run()
