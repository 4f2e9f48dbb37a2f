import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { renderUse, type DiskUse, type TargetDevice } from '#engine/disk/rules/disk.ts'
import { decideRefusals } from '#engine/flash/rules/flash-plan.ts'
import { createDisks } from '#engine/disk/disks.ts'
import { createShell } from '#kit/host/shell.ts'
import { createLoop } from '#test/support/disk/loop.ts'

const test = suite('disks on loop devices')
const run = $({ quiet: true })
const disks = createDisks({ shell: createShell({ env: process.env }) })

async function look(path: string, image: string | null = null): Promise<TargetDevice> {
  const { device } = await disks.probe(path, image)
  if (device === null) throw new Error(`${path} is no block device`)
  return device
}
const usesOf = async (path: string, image: string | null = null) =>
  (await look(path, image)).uses.map((use: DiskUse) => renderUse(use))

async function refusalsOf(path: string) {
  const image = {
    name: 'a.img',
    path: null,
    url: null,
    format: 'img',
    sizeBytes: 1,
    virtual: { kind: 'exact', bytes: 1 },
  } as const
  const facts = await disks.probe(path, null)
  return decideRefusals(image, facts, { allowPartition: false }).map(({ why }) => why)
}

async function createFolder() {
  const path = await mkdtemp(join(tmpdir(), 'flasher disks '))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}

/** Mounted until disposed. */
async function mount(device: string, point: string, flags: readonly string[] = []) {
  await mkdir(point, { recursive: true })
  await run`mount ${flags} ${device} ${point}`
  return {
    async [Symbol.asyncDispose]() {
      await run`umount ${point}`
    },
  }
}

async function takeSequence() {
  await using loop = await createLoop({ megabytes: 16 })
  return (await look(loop.device)).identity.diskseq
}

/** Two partitions; partx notifies the kernel, since not every kernel reads tables itself. */
async function makePartitions(device: string) {
  await run({ input: 'label: gpt\nsize=16MiB\nsize=16MiB\n' })`sfdisk --no-reread -q ${device}`
  await run`partx -a ${device}`
}

for (const sectorBytes of [512, 4096] as const)
  test(`an idle disk with sectors of ${sectorBytes} bytes`, async () => {
    await using loop = await createLoop({ megabytes: 16, sectorBytes })
    const { diskseq, ...identity } = (await look(loop.device)).identity
    assert.equal(identity, { serial: null, wwn: null, sizeBytes: 16 * 2 ** 20 })
    assert.ok(diskseq === null || diskseq > 0)
    const { type, readonly, uses, zeros, ...rest } = await look(loop.device)
    assert.is(rest.sectorBytes, sectorBytes)
    assert.equal({ type, readonly, uses }, { type: 'loop', readonly: false, uses: [] })
    assert.is(zeros.loop, 'sparse')
    assert.ok(zeros.discardMaxBytes > 0)
    assert.equal(await refusalsOf(loop.device), [])
  })

test('links are resolved', async () => {
  await using loop = await createLoop({ megabytes: 16 })
  await using folder = await createFolder()
  const link = join(folder.path, 'by-id')
  await symlink(loop.device, link)
  const facts = await disks.probe(link, null)
  assert.is(facts.path, link)
  assert.is(facts.device?.node, loop.device)
})

test('a read-only disk', async () => {
  await using loop = await createLoop({ megabytes: 16, readonly: true })
  assert.equal(await refusalsOf(loop.device), ['read-only'])
})

test('a disk that takes the place of another is another', async () => {
  const before = await takeSequence()
  if (before !== null) assert.is.not(await takeSequence(), before)
})

test('mounted whole, under a name with blanks', async () => {
  await using loop = await createLoop({ megabytes: 16 })
  await using folder = await createFolder()
  await run`mkfs.ext4 -q ${loop.device}`
  await using _ = await mount(loop.device, folder.path)
  assert.equal(await usesOf(loop.device), [`${loop.device} is mounted on ${folder.path}`])
  assert.equal(await refusalsOf(loop.device), ['mounted'])
})

test('a mounted partition: its disk and itself, not its neighbour', async () => {
  await using loop = await createLoop({ megabytes: 64 })
  await using folder = await createFolder()
  await makePartitions(loop.device)
  const [first, second] = [`${loop.device}p1`, `${loop.device}p2`]
  await run`mkfs.ext4 -q ${first}`
  await using _ = await mount(first, folder.path)
  for (const device of [loop.device, first])
    assert.equal(await usesOf(device), [`${first} is mounted on ${folder.path}`])
  const other = await look(second)
  assert.equal(other.uses, [])
  assert.is(other.type, 'part')
  assert.is(other.identity.sizeBytes, 16 * 2 ** 20)
  assert.ok(other.zeros.discardMaxBytes > 0)
  assert.equal(await refusalsOf(second), ['not-a-whole-disk'])
})

test('a partition of a disk that is mounted as a whole', async () => {
  await using loop = await createLoop({ megabytes: 64 })
  await using folder = await createFolder()
  await makePartitions(loop.device)
  await run`mkfs.ext4 -q -F ${loop.device} 8M`
  await using _ = await mount(loop.device, folder.path)
  assert.equal(await usesOf(`${loop.device}p2`), [`${loop.device} is mounted on ${folder.path}`])
})

test('mounted in another mount namespace alone', async () => {
  await using loop = await createLoop({ megabytes: 16 })
  await using folder = await createFolder()
  await run`mkfs.ext4 -q ${loop.device}`
  // The shell says when it has mounted, and ends when its input does.
  const script = `mount ${loop.device} '${folder.path}' && echo ready && read -r _`
  const child = run`unshare --mount sh -c ${script}`
  try {
    await new Promise((resolve, reject) => {
      child.stdout.once('data', resolve)
      child.catch(reject)
    })
    const [use, ...others] = await usesOf(loop.device)
    assert.match(use ?? '', `${loop.device} is mounted on ${folder.path} (seen by process `)
    assert.equal(others, [])
    assert.equal(await refusalsOf(loop.device), ['mounted'])
  } finally {
    child.stdin.end('\n')
    await child
  }
  assert.equal(await refusalsOf(loop.device), [])
})

test('swap', async () => {
  await using loop = await createLoop({ megabytes: 16 })
  await run`mkswap ${loop.device}`
  await run`swapon ${loop.device}`
  try {
    assert.equal(await usesOf(loop.device), [`${loop.device} is swap space in use`])
    assert.equal(await refusalsOf(loop.device), ['in-use'])
  } finally {
    await run`swapoff ${loop.device}`
  }
})

test('a loop on a partition of a loop, mounted', async () => {
  await using lower = await createLoop({ megabytes: 64 })
  await makePartitions(lower.device)
  await using upper = await createLoop({ backing: `${lower.device}p1` })
  const loops = `${lower.device}p1 is used by ${upper.device}`
  for (const device of [lower.device, `${lower.device}p1`])
    assert.equal(await usesOf(device), [loops])
  assert.equal(await usesOf(`${lower.device}p2`), [])
  await using folder = await createFolder()
  await run`mkfs.ext4 -q ${upper.device}`
  await using _ = await mount(upper.device, folder.path)
  assert.equal(await usesOf(lower.device), [`${upper.device} is mounted on ${folder.path}`, loops])
})

test('the disk that holds the image, also below a loop on a file', async () => {
  await using loop = await createLoop({ megabytes: 64 })
  await using folder = await createFolder()
  await run`mkfs.ext4 -q ${loop.device}`
  await using _ = await mount(loop.device, folder.path)
  const image = join(folder.path, 'a.img')
  await writeFile(image, 'image')
  const mounted = `${loop.device} is mounted on ${folder.path}`
  const holds = `${loop.device} holds the image`
  assert.equal(await usesOf(loop.device, image), [mounted, holds])
  const link = join(tmpdir(), `flasher-link-${process.pid}`)
  await symlink(image, link)
  try {
    assert.equal(await usesOf(loop.device, link), [mounted, holds])
  } finally {
    await rm(link)
  }
  assert.equal(await usesOf(loop.device, '/proc/version'), [mounted])
})

test('the image on an overlay, on a loop, on a file of the disk', async () => {
  await using loop = await createLoop({ megabytes: 64 })
  await using folder = await createFolder()
  await using outer = new AsyncDisposableStack()
  const at = (name: string) => join(folder.path, name)
  await run`mkfs.ext4 -q ${loop.device}`
  outer.use(await mount(loop.device, at('disk')))
  await using inner = await createLoop({ directory: at('disk'), megabytes: 16 })
  await using mounts = new AsyncDisposableStack()
  await run`mkfs.ext4 -q ${inner.device}`
  mounts.use(await mount(inner.device, at('lower')))
  mounts.use(await mount('tmpfs', at('memory'), ['-t', 'tmpfs']))
  for (const name of ['upper', 'work']) await mkdir(at(`memory/${name}`))
  const layers = `lowerdir=${at('lower')},upperdir=${at('memory/upper')},workdir=${at('memory/work')}`
  mounts.use(await mount('overlay', at('overlay'), ['-t', 'overlay', '-o', layers]))
  await writeFile(at('lower/a.img'), 'image')
  const holds = `${loop.device} holds the image`
  for (const image of [at('lower/a.img'), at('overlay/a.img'), inner.device, inner.backing])
    assert.ok((await usesOf(loop.device, image)).includes(holds), image)
  assert.not((await usesOf(loop.device, at('memory'))).includes(holds))
})

test('both disks of a btrfs file system, and the image on a subvolume of it', async () => {
  await using one = await createLoop({ megabytes: 128 })
  await using two = await createLoop({ megabytes: 128 })
  await using folder = await createFolder()
  await run`mkfs.btrfs -q -d raid1 -m raid1 ${one.device} ${two.device}`
  await run`btrfs device scan ${two.device}`
  try {
    await using _ = await mount(one.device, folder.path)
    await run`btrfs subvolume create ${join(folder.path, 'sub')}`
    const image = join(folder.path, 'sub/a.img')
    await writeFile(image, 'image')
    const uses = [await usesOf(one.device, image), await usesOf(two.device, image)]
    const [named, fellow] = uses[0]?.[0]?.includes('mounted on') ? uses : uses.toReversed()
    assert.match(named?.join('; ') ?? '', /is mounted on .*; .* holds the image$/)
    assert.match(fellow?.join('; ') ?? '', /belongs to the mounted btrfs .*; .* holds the image$/)
    for (const { device } of [one, two]) assert.is((await refusalsOf(device)).length, 1)
  } finally {
    await run({ nothrow: true })`btrfs device scan --forget ${one.device} ${two.device}`
  }
  assert.equal(await usesOf(two.device), [])
})

test('the disk of the running system', async () => {
  // findmnt appends the folder of a bind mount unless `--nofsroot` is given.
  const find = run`findmnt --noheadings --nofsroot --first-only --output SOURCE --target /`
  const root = (await find).stdout.trim()
  const isHere = root.startsWith('/dev/') && (await stat(root).catch(() => null))?.isBlockDevice()
  if (isHere !== true) return
  assert.ok((await usesOf(root)).some((use) => use.endsWith('holds the running system')))
})

if (process.getuid?.() === 0) test.run()
