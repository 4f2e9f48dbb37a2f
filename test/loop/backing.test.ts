/** The backing file of a loop device stays allocated, or sparse, through a flash. */
import { mkdtempDisposable, open, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { mounted } from '#test/support/disk/capture-disks.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import { assertSame, flash, readDisk } from '#test/support/disk/writer.ts'

const test = suite('the backing file of a loop device')
const run = $({ quiet: true, verbose: false })
const MIB = 1 << 20
const SIZE = 48 * MIB

/** Flashes an image that is zeros for the most part onto a loop device over a file on ext4. */
async function flashOnto(make: (path: string) => Promise<unknown>) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-backing-'))
  const below = join(folder.path, 'file-system')
  await run`truncate -s ${128 * MIB} ${below}`
  await run`mkfs.ext4 -q ${below}`
  return await mounted(below, [], async (at) => {
    const backing = join(at, 'disk')
    await make(backing)
    await using loop = await createLoop({ backing })
    const image = Buffer.concat([makeDiskImage(8 * MIB), Buffer.alloc(SIZE - 8 * MIB)])
    const methods = new Set<string>()
    await flash({
      source: createMemorySource(image, { name: 'disk.img' }),
      device: loop.device,
      verify: 'all',
      change(plan) {
        methods.add(plan.zeros)
        return plan
      },
    })
    assertSame(await readDisk(loop.device), image)
    await run`sync ${backing}`
    const { blocks } = await stat(backing)
    return { allocated: blocks * 512, methods: [...methods] }
  })
}

test('a fully allocated one stays so', async () => {
  const { allocated, methods } = await flashOnto(async (path) => {
    await using file = await open(path, 'wx')
    await file.writeFile(makeNoise(SIZE))
  })
  assert.equal(methods, ['zero-range'])
  assert.ok(allocated >= SIZE, `${allocated} bytes`)
})

test('a sparse one is sparse where the image holds zeros', async () => {
  const { allocated, methods } = await flashOnto(async (path) => {
    await using file = await open(path, 'wx')
    await file.truncate(SIZE)
    // An earlier owner's, in the middle of the zeros to come.
    await file.write(makeNoise(24 * MIB), 0, 24 * MIB, 16 * MIB)
  })
  assert.equal(methods, ['discard'])
  assert.ok(allocated < 12 * MIB, `${allocated} bytes`)
})

test.run()
