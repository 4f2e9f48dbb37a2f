/** Disks with real file systems are captured, flashed onto larger ones, and hold the same files. */
import { createHash } from 'node:crypto'
import { mkdtempDisposable, open, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import {
  CAPTURED,
  checkFiles,
  DELETED,
  makeCaptureDisk,
  mounted,
  PART_FLAGS,
  type CapturedKind,
} from '#test/support/disk/capture-disks.ts'
import { listLoopsOn } from '#test/support/disk/growing-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import { isFree } from '#test/support/disk/writer.ts'

const test = suite('captured disks')
const run = $({ quiet: true })
const MIB = 1 << 20

const scratch = () => mkdtempDisposable(join(tmpdir(), 'flasher-captured-'))
const digestOf = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex')

const capture = (source: string, output: string, ...more: readonly string[]) =>
  runFlasher(['capture', '--source', source, '--output', output, ...more])

/** Says whether the image holds the words that were deleted and are still in free blocks of the disk. */
async function holdsDeleted(output: string): Promise<boolean> {
  const { stdout } = await run({
    nothrow: true,
  })`zstd -dc ${output} | grep -c ${'must not come back'}`
  return Number(stdout) > 0
}

const GROWS: readonly CapturedKind[] = ['ext4', 'xfs', 'btrfs', 'ntfs']

for (const kind of CAPTURED) {
  test(`${kind}: only used blocks are in the image, and the files are the same on a larger disk`, async () => {
    await using folder = await scratch()
    await using disk = await makeCaptureDisk(kind)
    const before = await digestOf(disk.path)
    const output = join(folder.path, 'a.img.zst')
    await using source = await createLoop({ backing: disk.path })
    const { code, stdout, stderr } = await capture(source.device, output, '--json', '--yes')
    assert.is(code, 0, stderr)
    const document = JSON.parse(stdout)
    const [swap, part] = document.parts
    assert.equal([swap.type, swap.whole, swap.used_bytes], ['swap', null, 4096])
    assert.equal([part.type, part.whole], [kind === 'fat' ? 'vfat' : kind, null])
    assert.ok(part.used_bytes > 10 * MIB && part.used_bytes < part.size_bytes, part.used_bytes)
    assert.is(document.captured.virtual_size_bytes, disk.bytes)
    assert.is(document.captured.sha256, await digestOf(output))
    const inspected = await runFlasher(['inspect', 'image', output, '--json'])
    assert.match(inspected.stdout, document.captured.index_sha256)
    assert.not(await holdsDeleted(output))
    assert.is(await digestOf(disk.path), before)
    assert.ok(await isFree(source.device))
    assert.equal(await listLoopsOn(source.device), [])
    assert.equal(await readdir(folder.path), ['a.img.zst'])
    await using target = await createLoop({ sizeBytes: disk.bytes + 192 * MIB })
    const grow = GROWS.includes(kind) ? '--grow' : '--fix-gpt'
    const flashed = await runFlasher([
      'flash',
      '--image',
      output,
      '--target',
      target.device,
      '--yes',
      grow,
    ])
    assert.is(flashed.code, 0, flashed.stderr)
    await checkFiles(target.device, kind)
    assert.match((await run`sgdisk --verify ${target.device}`).stdout, 'No problems found')
  })
}

test('btrfs: both copies of its metadata are in the image', async () => {
  await using folder = await scratch()
  await using disk = await makeCaptureDisk('btrfs')
  const output = join(folder.path, 'a.img.zst')
  await using source = await createLoop({ backing: disk.path })
  assert.is((await capture(source.device, output)).code, 0)
  await run`zstd -qdf ${output} -o ${join(folder.path, 'raw')}`
  await mounted(join(folder.path, 'raw'), PART_FLAGS, async (at) => {
    assert.match((await run`btrfs scrub start -B ${at}`).stdout, 'no errors found')
  })
})

test('a file system that was not unmounted cleanly is read whole', async () => {
  for (const kind of ['ext4', 'xfs', 'btrfs'] as const) {
    await using folder = await scratch()
    const unclean = join(folder.path, 'unclean')
    await using disk = await makeCaptureDisk(kind)
    await run`cp ${disk.path} ${unclean}`
    await mounted(disk.path, PART_FLAGS, async (at) => {
      await writeFile(join(at, 'late.bin'), DELETED)
      await using file = await open(join(at, 'late.bin'))
      await file.sync()
      // The copy is what a power cut leaves.
      await run`cp ${disk.path} ${unclean}`
    })
    await using source = await createLoop({ backing: unclean })
    const { code, stdout, stderr } = await capture(
      source.device,
      join(folder.path, 'a.img.zst'),
      '--json',
    )
    assert.is(code, 0, stderr)
    const [, part] = JSON.parse(stdout).parts
    assert.equal(
      [part.whole, part.used_bytes],
      ['it was not unmounted cleanly', part.size_bytes],
      kind,
    )
    await run`zstd -qdf ${join(folder.path, 'a.img.zst')} -o ${join(folder.path, 'raw')}`
    await mounted(join(folder.path, 'raw'), PART_FLAGS, async (at) => {
      assert.ok((await readFile(join(at, 'late.bin'))).equals(DELETED), kind)
    })
  }
})

test('a hibernated Windows is read whole', async () => {
  await using folder = await scratch()
  const hibernated = `hibr${'\0'.repeat(8188)}`
  await using disk = await makeCaptureDisk('ntfs', { files: { 'hiberfil.sys': hibernated } })
  await using source = await createLoop({ backing: disk.path })
  const output = join(folder.path, 'a.img.zst')
  const { stdout } = await capture(source.device, output, '--json', '--dry-run')
  assert.is(JSON.parse(stdout).parts[1].whole, 'it was not unmounted cleanly')
  assert.equal(await readdir(folder.path), [])
})

test('what is not known is read whole, and a damaged file system is', async () => {
  await using folder = await scratch()
  await using disk = await makeCaptureDisk('ext4')
  const output = join(folder.path, 'a.img.zst')
  const wholes = async (...more: readonly string[]): Promise<readonly unknown[]> => {
    await using source = await createLoop({ backing: disk.path })
    const { code, stdout, stderr } = await capture(source.device, output, '--json', ...more)
    assert.is(code, 0, stderr)
    return JSON.parse(stdout).parts.map(({ whole }: { whole: unknown }) => whole)
  }
  // The group descriptors: the tool fails.
  await run`dd if=/dev/urandom of=${disk.path} bs=1024 seek=4098 count=16 conv=notrunc status=none`
  assert.is((await wholes('--dry-run'))[1], 'partclone.ext4 refused it')
  await run`dd if=/dev/urandom of=${disk.path} bs=1M seek=2 count=1 conv=notrunc status=none`
  assert.equal(await wholes(), [
    'an unknown file system',
    'another partition may hold its hashes (dm-verity)',
  ])
  await run`zstd -qdf ${output} -o ${join(folder.path, 'raw')}`
  await run`cmp ${join(folder.path, 'raw')} ${disk.path}`
})

test('--generalize clears a list of files in the image, and never on the disk', async () => {
  await using folder = await scratch()
  const identity = {
    'etc/machine-id': `${'a'.repeat(32)}\n`,
    'etc/ssh/ssh_host_ed25519_key': 'secret words of this host\n'.repeat(20),
    'etc/ssh/ssh_host_ed25519_key.pub': 'public words of this host\n',
    'etc/ssh/sshd_config': 'Port 22\n',
    'var/lib/systemd/random-seed': 'r'.repeat(512),
    'var/lib/NetworkManager/secret_key': 's'.repeat(50),
  }
  for (const mkfs of [[], ['-O', '^metadata_csum'], ['-I', '128'], ['-O', 'metadata_csum_seed']]) {
    await using disk = await makeCaptureDisk('ext4', { files: identity, mkfs })
    const before = await digestOf(disk.path)
    await using source = await createLoop({ backing: disk.path })
    const output = join(folder.path, `${mkfs.join('')}.img.zst`)
    const warned = await capture(source.device, output, '--dry-run')
    assert.match(warned.stderr, 'identity: /etc/machine-id, /etc/ssh/ssh_host_ed25519_key, ')
    const { code, stdout, stderr } = await capture(source.device, output, '--json', '--generalize')
    assert.is(code, 0, stderr)
    assert.equal(JSON.parse(stdout).warnings, [])
    assert.equal(JSON.parse(stdout).generalized, [
      '/etc/machine-id',
      '/etc/ssh/ssh_host_ed25519_key',
      '/etc/ssh/ssh_host_ed25519_key.pub',
      '/var/lib/systemd/random-seed',
      '/var/lib/NetworkManager/secret_key',
    ])
    assert.is(await digestOf(disk.path), before)
    await using target = await createLoop({ sizeBytes: disk.bytes })
    const flash = ['flash', '--image', output, '--target', target.device, '--yes']
    assert.is((await runFlasher(flash)).code, 0)
    const node = (await run`losetup --find --show ${PART_FLAGS} ${target.device}`).stdout.trim()
    await run`e2fsck -f -n ${node}`.finally(() => run`losetup --detach ${node}`)
    await checkFiles(target.device, 'ext4')
    await mounted(target.device, PART_FLAGS, async (at) => {
      for (const path of JSON.parse(stdout).generalized) {
        assert.is((await readFile(join(at, path))).length, 0, path)
      }
      assert.is(await readFile(join(at, 'etc/ssh/sshd_config'), 'utf8'), 'Port 22\n')
    })
    const raw = await run({
      nothrow: true,
    })`grep -c ${'secret words of this host'} ${target.device}`
    assert.is(raw.stdout.trim(), '0')
  }
})

test('--generalize is refused with the reason where it cannot be done', async () => {
  await using folder = await scratch()
  const output = join(folder.path, 'a.img.zst')
  await using disk = await makeCaptureDisk('ext4', {
    files: { 'etc/machine-id': 'b\n' },
    mkfs: ['-O', '^extents,^64bit'],
  })
  await using source = await createLoop({ backing: disk.path })
  const blocks = await capture(source.device, output, '--generalize')
  assert.is(blocks.code, 1)
  assert.match(blocks.stderr, 'keeps it in blocks without extents')
  await using other = await makeCaptureDisk('ntfs')
  await using ntfs = await createLoop({ backing: other.path })
  const refused = await capture(ntfs.device, output, '--generalize')
  assert.is(refused.code, 1)
  assert.match(refused.stderr, 'only ext4 can be, and there is a partition with ntfs')
  assert.equal(await readdir(folder.path), [])
})
test.run()
