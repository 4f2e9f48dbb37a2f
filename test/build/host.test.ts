/** What a host lacks. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseStatus, writeList } from '../../build/debian/list.ts'
import {
  findMachineObstacle,
  findMissing,
  NEEDS,
  renderInstall,
  type HostFacts,
} from '../../build/host.ts'
import { parseManifest } from '../../build/debian/package-list.ts'

const test = suite('host')

test('a host that has all lacks nothing', () => {
  assert.equal(findMissing({ compilesIpxe: true, makesArm64: true, has: () => true }), [])
})

test('one command brings all that is missing, each package once', () => {
  const needs = { compilesIpxe: true, makesArm64: true }
  const missing = findMissing({ ...needs, has: (thing) => thing === 'make' })
  assert.is(missing.length, NEEDS.length - 1)
  assert.is(
    renderInstall(missing.filter(({ package: name }) => name === 'git' || name === 'gcc')),
    'apt-get install --no-install-recommends gcc git',
  )
})

test('a compiler is asked of those alone who compile, and QEMU for images of arm64', () => {
  const needs = { compilesIpxe: false, makesArm64: false, has: () => false }
  const listPackages = (more: Partial<HostFacts>) =>
    findMissing({ ...needs, ...more }).map((need) => need.package)
  assert.not.ok(listPackages({}).some((name) => name === 'gcc' || name === 'qemu-user-static'))
  assert.ok(listPackages({ makesArm64: true }).includes('qemu-user-static'))
})

test('a machine that cannot build images is refused before anything is fetched', () => {
  const machine = { platform: 'linux', arch: 'x64', makesPrograms: true }
  assert.is(findMachineObstacle(machine), null)
  assert.match(findMachineObstacle({ ...machine, arch: 'arm64' }) ?? '', /x86-64.*arm64/)
  assert.is(findMachineObstacle({ ...machine, arch: 'arm64', makesPrograms: false }), null)
  assert.match(findMachineObstacle({ ...machine, platform: 'darwin' }) ?? '', /Linux.*darwin/)
})

const row = (name: string) => ({ type: 'deb', name, version: '1', architecture: 'all', size: 1 })

test('a manifest of mkosi becomes a sorted list; anything else is refused', () => {
  assert.equal(parseManifest(JSON.stringify({ packages: [row('b'), row('a'), { name: 1 }] })), [
    { name: 'a', version: '1', architecture: 'all' },
    { name: 'b', version: '1', architecture: 'all' },
  ])
  assert.throws(() => parseManifest('[]'), /no manifest of mkosi/)
})
const stanza = (name: string, status: string) =>
  `Package: ${name}\nStatus: ${status}\nArchitecture: amd64\nVersion: 1:2-3\nDescription: words\n Package: no\n`

test('of what dpkg knows, a list has what is installed', () => {
  const installed = stanza('xorriso', 'install ok installed')
  const removed = stanza('gone', 'deinstall ok config-files')
  assert.equal(parseStatus(`${installed}\n${removed}\n`), [
    { name: 'xorriso', version: '1:2-3', architecture: 'amd64' },
  ])
  assert.equal(parseStatus(''), [])
})

test('a list without a package is a failure', async () => {
  const why = await writeList('/tmp/none.json', []).catch(({ message }: Error) => message)
  assert.is(why, '/tmp/none.json would list no package')
})
test.run()
