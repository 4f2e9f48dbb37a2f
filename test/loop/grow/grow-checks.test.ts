/** A file system that grew is believed only when it is sound and can be mounted; else the disk does not boot. */
import { chmod, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import {
  checkFileSystem,
  listLoopsOn,
  makeGrowingImage,
  PART_OFFSET,
  readSize,
  type Kind,
} from '#test/support/disk/growing-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { withMounted } from '#test/support/disk/flashed-disk.ts'
import { assertBlank, isFree } from '#test/support/disk/writer.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('what grew is checked')
const run = $({ quiet: true })
const GIB = 2 ** 30
const MIB = 2 ** 20

const MKFS: Readonly<Record<string, readonly string[]>> = {
  // resize2fs 1.47.0 breaks it where the inode tables move.
  orphan_file: ['-b1024', '-Oorphan_file,metadata_csum'],
  'no journal': ['-O^has_journal'],
  ext2: ['-text2'],
  ext3: ['-text3'],
  // This kernel may not be able to mount it: then the check alone decides.
  casefold: ['-Ocasefold'],
}

for (const [what, options] of Object.entries(MKFS)) {
  test(`ext with ${what} grows far and is sound`, async () => {
    await using image = await makeGrowingImage('ext4')
    // Smaller than its partition: its blocks are moved less, its tables more.
    await run`mkfs.ext4 -q -F -E offset=${PART_OFFSET} ${options} ${image.path} 8M`
    const sizeBytes = (what === 'orphan_file' ? 36 : 1) * GIB
    await using loop = await createLoop({ sizeBytes })
    const { device } = loop
    const argv = ['--image', image.path, '--target', device, '--grow', '--yes']
    const { code, stderr } = await runFlasher(['flash', ...argv])
    assert.is(code, 0, stderr)
    await checkFileSystem(device, 'ext4')
    assert.ok((await readSize(device, 'ext4')) > sizeBytes - 4 * MIB)
    const part = (
      await run`losetup --find --show --offset ${PART_OFFSET} --read-only ${device}`
    ).stdout.trim()
    try {
      const { stdout } = await run`dumpe2fs -h ${part}`
      assert.is(/orphan_file/.test(stdout), what === 'orphan_file')
      if (what !== 'casefold') await withMounted(part, async () => {}, 'ro')
    } finally {
      await run`losetup --detach ${part}`
    }
    // The kernel lets go of a detached one when its last reader does.
    const isLetGo = async () => (await listLoopsOn(device)).length === 0
    await waitUntil(isLetGo, () => `${device} is still under a loop device`)
    assert.ok(await isFree(device))
  })
}

test('ext4 with bigalloc is refused by name before the disk is touched', async () => {
  await using image = await makeGrowingImage('ext4')
  await run`mkfs.ext4 -q -F -E offset=${PART_OFFSET} -O bigalloc ${image.path} 8M`
  await using loop = await createLoop({ megabytes: 64 })
  const argv = ['--image', image.path, '--target', loop.device, '--grow', '--dry-run']
  const { code, stderr } = await runFlasher(['flash', ...argv])
  assert.is(code, 1)
  assert.match(stderr, /ext4 with bigalloc clusters, which resize2fs does not grow/)
})

/** The tool as it is, but it leaves damage; what it is asked to only look at stays as it is. */
const DAMAGING: readonly (readonly [Kind, tool: string, seek: number, words: RegExp])[] = [
  ['ext4', 'resize2fs', 4, /e2fsck finds errors in it/],
  ['ntfs', 'ntfsresize', 16, /ntfsresize finds errors in it/],
]

for (const [kind, tool, seek, words] of DAMAGING) {
  test(`${kind} that is damaged by ${tool} leaves a disk that does not boot`, async () => {
    await using image = await makeGrowingImage(kind)
    await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-tool-'))
    const own = (await run`sh -c ${`command -v ${tool}`}`).stdout.trim()
    const script = `#!/bin/sh
      case " $* " in *' --check '*) exec ${own} "$@" ;; esac
      ${own} "$@" || exit
      for node; do :; done
      tr '\\0' '\\377' </dev/zero | dd of="$node" bs=1024 seek=${seek} count=64 conv=notrunc status=none`
    await writeFile(join(folder.path, tool), script)
    await chmod(join(folder.path, tool), 0o755)
    await using loop = await createLoop({ megabytes: 64 })
    const { device } = loop
    const argv = ['--image', image.path, '--target', device, '--grow', '--yes']
    const { code, stderr } = await runFlasher(['flash', ...argv], {
      env: { PATH: `${folder.path}:${process.env['PATH'] ?? ''}` },
    })
    assert.is(code, 1)
    assert.match(stderr, 'the file system is damaged now that it has grown')
    assert.match(stderr, words)
    assert.match(stderr, 'Flash without --grow')
    await assertBlank(device)
    assert.equal(await listLoopsOn(device), [])
  })
}
test.run()
