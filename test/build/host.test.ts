/** What a host lacks, and how long a build will take. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findMissing, NEEDS, renderInstall } from '../../build/host.ts'
import { parseManifest } from '../../build/mkosi/packages.ts'
import { expectSeconds, parseDurations, renderEvent, renderSeconds } from '../../build/progress.ts'

const test = suite('host')

test('a host that has all lacks nothing', () => {
  assert.equal(findMissing({ compilesIpxe: true, has: () => true }), [])
})

test('one command brings all that is missing, each package once', () => {
  const missing = findMissing({ compilesIpxe: true, has: (thing) => thing === 'make' })
  assert.is(missing.length, NEEDS.length - 1)
  assert.is(
    renderInstall(missing.filter(({ package: name }) => name === 'git' || name === 'gcc')),
    'apt-get install --no-install-recommends gcc git',
  )
})

test('a compiler is asked of those alone who compile', () => {
  const missing = findMissing({ compilesIpxe: false, has: () => false })
  assert.not.ok(missing.some(({ thing }) => thing === 'gcc'))
})

test('the time left is what the steps took before', () => {
  assert.is(expectSeconds(['tree', 'new'], { tree: 40 }), 60)
  assert.equal(parseDurations('{"tree":40,"odd":"x"}'), { tree: 40 })
  assert.equal(parseDurations('{"tree":'), {})
  assert.is(renderSeconds(59.6), '1 min 00 s')
  assert.is(renderSeconds(7), '7 s')
})

test('a failure shows its last lines and the log', () => {
  const event = { event: 'failed', step: 'tree', why: 'ended with exit code 1' } as const
  assert.is(
    renderEvent({ ...event, log: '/c/logs/tree.log', tail: ['no room'] }),
    '✗ tree               ended with exit code 1\n    no room\n  the whole log: /c/logs/tree.log',
  )
})

const row = (name: string) => ({ type: 'deb', name, version: '1', architecture: 'all', size: 1 })

test('a manifest of mkosi becomes a sorted list; anything else is refused', () => {
  assert.equal(parseManifest(JSON.stringify({ packages: [row('b'), row('a'), { name: 1 }] })), [
    { name: 'a', version: '1', architecture: 'all' },
    { name: 'b', version: '1', architecture: 'all' },
  ])
  assert.throws(() => parseManifest('[]'), /no manifest of mkosi/)
})
test.run()
