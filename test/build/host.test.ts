/** What a host lacks, and how long a build will take. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { APPLIANCES, NAMED_APPLIANCES } from '#appliance/all.ts'
import { parseStatus, writeList } from '#build/debian/list.ts'
import {
  findMachineObstacle,
  findMissing,
  NEEDS,
  renderInstall,
  renderTail,
  type HostFacts,
} from '#build/host.ts'
import { parseManifest } from '#build/debian/package-list.ts'
import { planImages } from '#build/plan.ts'
import {
  expectSeconds,
  INTERRUPTED,
  parseDurations,
  renderBytes,
  chooseColumns,
  renderEvent,
  renderSeconds,
} from '#build/progress.ts'

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

test('of what apt says, the last lines are shown', () => {
  assert.is(renderTail('Get:1\n\nE: no room\r\nE: so none\n', 2), 'E: no room\nE: so none')
})

test('the time left is what the steps took before', () => {
  assert.is(expectSeconds(['tree', 'new'], { tree: 40 }), 60)
  assert.equal(parseDurations('{"tree":40,"odd":"x"}'), { tree: 40 })
  assert.equal(parseDurations('{"tree":'), {})
  assert.is(renderSeconds(59.6), '1 min 00 s')
  assert.is(renderSeconds(7.04), '7.0 s')
  assert.is(renderSeconds(0), '0 s')
  assert.is(renderSeconds(12.4), '12 s')
})

test('an interrupted step has no log to read', () => {
  const event = { event: 'failed', step: 'tree', why: INTERRUPTED, log: '/log', tail: [] } as const
  assert.is(renderEvent(event), 'tree           was interrupted')
})

test('sizes are counted as release pages count them', () => {
  const rows = [
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [189_800_000, '189.8 MB'],
    [3_400_000_000, '3.4 GB'],
  ] as const
  for (const [bytes, text] of rows) assert.is(renderBytes(bytes), text)
})

test('a failure shows its last lines and the log', () => {
  const event = { event: 'failed', step: 'tree', why: 'ended with exit code 1' } as const
  assert.is(
    renderEvent({ ...event, log: '/c/logs/tree.log', tail: ['no room'] }),
    'tree           ended with exit code 1\n  │ no room\n  the whole log: /c/logs/tree.log',
  )
})

for (const [what, appliances, width] of [
  ['what is built by default', APPLIANCES, 77],
  ['all images', [...APPLIANCES, ...NAMED_APPLIANCES], 96],
] as const) {
  test(`steps stand in columns: ${what}`, () => {
    const { steps } = planImages({
      appliances,
      facts: { version: '1.2.3', epoch: 1_800_000_000, level: 'dev' },
      ipxeServer: null,
      ipxeSource: null,
    })
    const columns = chooseColumns(steps)
    for (const { name: step, says } of steps) {
      for (const line of [
        renderEvent({ event: 'made', step, says, seconds: 3599, bytes: 999_900_000 }, columns),
        renderEvent({ event: 'cached', step, says, bytes: 1 }, columns),
      ]) {
        assert.is(line.length, width)
        assert.is(line.indexOf(` ${says} `), columns.name - 1, line)
        assert.match(line, / (59 min 59 s|cached) /)
      }
    }
  })
}

const row = (name: string) => ({ type: 'deb', name, version: '1', architecture: 'all', size: 1 })

test('a manifest of mkosi becomes a sorted list; anything else is refused', () => {
  assert.equal(parseManifest(JSON.stringify({ packages: [row('b'), row('a'), { name: 1 }] })), [
    { name: 'a', version: '1', architecture: 'all' },
    { name: 'b', version: '1', architecture: 'all' },
  ])
  assert.throws(() => parseManifest('[]'), /not a manifest of mkosi/)
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
