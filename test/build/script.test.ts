/** The `build:*` scripts as processes of their own: what they print, where, and how they end. */
import { spawnSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readVersion } from '#build/facts.ts'

const test = suite('script')

const start = (script: string, ...args: readonly string[]) => {
  const argv = [`build/${script}.ts`, ...args]
  const env = { ...process.env, FORCE_COLOR: undefined }
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8', env })
  return { status, stdout, stderr }
}
const SCRIPTS = {
  images: 'build:images',
  doctor: 'build:doctor',
  package: 'build:package',
  map: 'docs:map',
  demo: 'demo',
}

for (const [file, name] of Object.entries(SCRIPTS)) {
  test(`${name} has help, a version, and an error for what it does not know`, () => {
    const help = start(file, '--help')
    assert.is(help.status, 0)
    assert.match(help.stdout, `$ ${name}`)
    assert.equal(start(file, '--version'), {
      status: 0,
      stdout: `${name}, ${readVersion('.')}\n`,
      stderr: '',
    })
    assert.equal(start(file, '--hepl'), {
      status: 2,
      stdout: '',
      stderr: `✖ ${name}: there is no option --hepl; did you mean --help?\n  See: npx pnpm ${name} --help\n`,
    })
  })
}

test('a script without arguments names the one that it was given', () => {
  const { status, stderr } = start('doctor', 'usb-pc')
  assert.is(status, 2)
  assert.match(stderr, 'unexpected argument usb-pc')
})

test('a plan is all that stands on standard output', () => {
  const { status, stdout, stderr } = start('images', 'usb-pc', '--plan', '--json')
  assert.is(status, 0)
  assert.is(stderr, '')
  assert.is(JSON.parse(stdout).bundles[0].appliance, 'usb-pc')
})

test.run()
