/** A stick on a loop device: found, grown to its end, and left alone where it is not ours. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempDisposableSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import { openImages } from '#flasher/live-system/images.ts'
import { createShell } from '#kit/host/shell.ts'
import { createSticks } from '#engine/disk/sticks.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { makeStick } from '#test/support/vm/stick.ts'

const test = suite('sticks')
const MIB = 2 ** 20
const files = [
  { name: 'one.img', content: makeNoise(700_000) },
  { name: 'two.img.zst', content: makeNoise(3000) },
]
const run = (tool: string, ...args: string[]) =>
  execFileSync(tool, args, { encoding: 'utf8', stdio: 'pipe' })
const sticks = createSticks({ shell: createShell({ env: process.env }), bootFacts: '/nowhere' })

interface PlugOptions {
  readonly megabytes: number
  readonly sectorBytes?: 512 | 4096
  readonly readonly?: boolean
}

/** A stick to which our image was just copied, and the partitions that the kernel sees on it. */
async function plugIn(folder: string, { megabytes, ...options }: PlugOptions) {
  const diskBytes = megabytes * MIB
  const backing = join(folder, 'stick')
  makeStick({ diskBytes, files }).disk.save(backing, 0, diskBytes)
  const loop = await createLoop({ backing, ...options })
  // This kernel may read no tables by itself.
  if (options.sectorBytes !== 4096) run('partx', '--add', loop.device)
  const { device: disk } = loop
  const growable = { node: `${disk}p3`, disk, number: 3 }
  return { growable, disk, [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose]() }
}

test('the partition and its volume reach to the end, files are as they were', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-sticks-'))
  await using stick = await plugIn(folder.path, { megabytes: 1024 })
  const { fromBytes, toBytes, writes } = await sticks.grow(stick.growable)
  assert.equal([fromBytes / MIB, toBytes / MIB, writes.length], [22.75, 1009.75, 7])
  assert.match(run('fsck.exfat', '-n', stick.growable.node), 'clean. directories 1, files 2')
  assert.match(run('sgdisk', '--verify', stick.disk), 'No problems found')
  const cluster = 18_944 * 512 + 3 * 256 * 1024
  const read = run(
    'sh',
    '-c',
    `tail -c +${cluster + 1} "$0" | head -c 700000 | sha256sum`,
    stick.growable.node,
  )
  writeFileSync(join(folder.path, 'one'), makeNoise(700_000))
  assert.is(read.split(' ')[0], run('sha256sum', join(folder.path, 'one')).split(' ')[0])
})

test('the second time nothing is written', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-sticks-'))
  await using stick = await plugIn(folder.path, { megabytes: 256 })
  assert.is((await sticks.grow(stick.growable)).writes.length, 7)
  assert.equal((await sticks.grow(stick.growable)).writes, [])
})

test('a first partition table that was torn is made whole from the second', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-sticks-'))
  await using stick = await plugIn(folder.path, { megabytes: 256 })
  await sticks.grow(stick.growable)
  run('dd', 'if=/dev/zero', `of=${stick.disk}`, 'bs=512', 'seek=2', 'count=1', 'conv=fsync')
  assert.equal((await sticks.grow(stick.growable)).writes, ['entries'])
  assert.match(run('sgdisk', '--verify', stick.disk), 'No problems found')
})

const REFUSED = [
  {
    why: 'formatted by somebody else',
    spoil: ({ node }: { node: string }) => run('mkfs.exfat', '-L', 'MINE', node),
    says: /was formatted anew/,
  },
  {
    why: 'without a table',
    spoil: ({ disk }: { disk: string }) => run('sgdisk', '--zap-all', disk),
    says: /the partition table is missing or damaged/,
  },
] as const

for (const { why, spoil, says } of REFUSED) {
  test(`${why}: it stays as it is`, async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-sticks-'))
    await using stick = await plugIn(folder.path, { megabytes: 128 })
    spoil(stick.growable)
    assert.match(await reasonOf(sticks.grow(stick.growable)), says)
  })
}

test('sectors of 4096 bytes and a write-protected stick are refused with the reason', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-sticks-'))
  {
    await using stick = await plugIn(folder.path, { megabytes: 128, sectorBytes: 4096 })
    assert.match(await reasonOf(sticks.grow(stick.growable)), /sectors of 4096 bytes/)
  }
  await using stick = await plugIn(folder.path, { megabytes: 128, readonly: true })
  assert.match(await reasonOf(sticks.grow(stick.growable)), /is write-protected/)
})

test('a stick that does not grow is mounted anyway', async () => {
  const said: string[] = []
  const mounted: string[] = []
  const own = {
    node: '/dev/sda3',
    disk: '/dev/sda',
    number: 3,
    name: 'FLASHER_IMAGES',
    isFixed: false,
  }
  const medium = { disk: '/dev/sda', partition: '/dev/sda1', hasImages: false }
  const code = await openImages({
    say: async (line) => {
      said.push(line)
    },
    sticks: {
      inspect: async () => ({ medium, parts: [own], disks: [], labels: new Map() }),
      grow: async () => {
        throw new Fault('plan-refused', 'no')
      },
      mount: async (node) => {
        mounted.push(node)
      },
    },
  })
  assert.is(code, 0)
  assert.equal(mounted, ['/dev/sda3'])
  assert.equal(said, [
    'images: /dev/sda3 does not grow: no',
    'images: those on /dev/sda3 are offered',
  ])
})

test('looking around changes nothing and fails on no machine', async () => {
  const { medium, parts } = await sticks.inspect()
  assert.equal(medium, { disk: null, partition: null, hasImages: false })
  assert.ok(parts.every(({ node, disk, number }) => node.startsWith(disk) && number > 0))
})

async function reasonOf(growing: Promise<unknown>): Promise<string> {
  try {
    await growing
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return String(error)
  }
  throw new Error('it has grown')
}

test('whole disks are those with hardware: no partition, and nothing that lies on another disk', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-sticks-'))
  await using stick = await plugIn(folder.path, { megabytes: 128 })
  const { parts, disks } = await sticks.inspect()
  assert.is(parts.find(({ node }) => node === stick.growable.node)?.isFixed, true)
  const expected = readdirSync('/sys/class/block').filter((name) =>
    existsSync(`/sys/class/block/${name}/device`),
  )
  assert.equal(
    disks.map(({ node }) => node),
    expected.toSorted().map((name) => `/dev/${name}`),
  )
  const others = new Set([stick.disk, ...parts.map(({ node }) => node)])
  assert.not(disks.some(({ node }) => others.has(node) || /^\/dev\/(dm-|md|loop|zram)/.test(node)))
})

test.run()
