/** A boot from a medium looks for it on every disk, and writes to none, in whatever state they are. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempDisposableSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle, openIso } from '#test/support/vm/built-images.ts'
import { startQemu } from '#test/support/vm/qemu.ts'

const test = suite('disks untouched')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 240
/** `journal` was cut off from power and wants its journal; `orphan` a file that was deleted while open. */
const DISKS = ['journal', 'orphan', 'medium']
/** A file system with our mark, copied while it is mounted: into `medium` and `journal`. */
const MAKE_DISKS = `
truncate -s 64M disk
mkfs.ext4 -q -F -O ^orphan_file disk
mkdir at
mount -o loop disk at
mkdir at/live
echo other >at/live/id
echo no-root >at/live/root.squashfs
umount at
mount -o loop disk at
exec 3>at/open
head -c 300000 /dev/urandom >&3
rm at/open
sync -f at
cp disk journal
fsfreeze -f at
cp disk orphan
fsfreeze -u at
exec 3>&-
echo ours >at/live/id
umount at
mount -o loop disk at
touch at/new
sync -f at
cp disk medium
umount at
`

const call = (tool: string, args: readonly string[], cwd: string) =>
  execFileSync(tool, args, { cwd, encoding: 'utf8', stdio: 'pipe' })

run('file systems that want to be put in order stay as they are', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-untouched-'))
  const at = folder.path
  const digest = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(at, name)))
      .digest('hex')
  const iso = await openIso()
  for (const name of ['vmlinuz', 'initrd']) {
    call('xorriso', ['-osirrox', 'on', '-indev', iso, '-extract', `/live/${name}`, name], at)
  }
  call('unshare', ['--mount', 'sh', '-ec', MAKE_DISKS], at)
  assert.match(call('dumpe2fs', ['-h', 'journal'], at), 'needs_recovery')
  assert.match(call('dumpe2fs', ['-h', 'medium'], at), 'needs_recovery')
  assert.match(call('dumpe2fs', ['-h', 'orphan'], at), 'First orphan inode')
  const before = DISKS.map(digest)
  const drives = DISKS.flatMap((name) => ['-drive', `if=virtio,format=raw,file=${join(at, name)}`])
  {
    await using machine = await startQemu({
      args: [
        ['-kernel', join(at, 'vmlinuz'), '-initrd', join(at, 'initrd')],
        ['-append', 'console=ttyS0,115200 flasher.media=ours'],
        drives,
      ].flat(),
    })
    const said = await machine.waitFor(/FAILED: .* cannot be mounted/, PATIENCE)
    assert.match(said, /EXT4-fs .*: mounted filesystem/)
    assert.match(said, 'the system is on /dev/vdc (ext4)')
  }
  assert.equal(DISKS.map(digest), before)
})

test.run()
