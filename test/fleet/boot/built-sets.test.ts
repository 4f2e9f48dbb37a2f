/** What was built beside the package goes into the boot directory. */
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { copyBuiltSets } from '#fleet/boot/boot-sets.ts'
import { makeBootFolder, partName } from '#test/support/server/boot-folder.ts'

const test = suite('built sets')

/** The boot directory need not exist. */
async function makeTarget() {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-built-'))
  return {
    to: join(dir, 'state/boot'),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  }
}

test('the newest set of each architecture and the iPXE are copied, and active at once', async () => {
  await using dist = await makeBootFolder()
  await using target = await makeTarget()
  await dist.putTrio('1.0.0')
  await dist.putTrio('1.2.0')
  await dist.putTrio('1.1.0', 'arm64')
  await dist.put('flasher-ipxe-x86_64-v1.2.0.efi', 'ipxe')
  await dist.put('flasher-usbboot-pc-x86_64-v1.2.0.iso', 'no boot file')
  const { to } = target
  assert.equal(await copyBuiltSets({ from: dist.dir, to }), [
    { arch: 'x86_64', version: '1.2.0' },
    { arch: 'arm64', version: '1.1.0' },
  ])
  await using folder = await makeBootFolder()
  await using files = await folder.open({ dir: to })
  const { x86_64, arm64 } = files.active()
  assert.equal([x86_64?.version, arm64?.version], ['1.2.0', '1.1.0'])
  assert.is(await files.alias?.('ipxe.efi'), 'flasher-ipxe-x86_64-v1.2.0.efi')
  assert.is((await readdir(to)).length, 9)
})

test('without a complete set, or without the folder, nothing is made', async () => {
  await using dist = await makeBootFolder()
  await using target = await makeTarget()
  await dist.put(partName('1.0.0', 'vmlinuz'), 'no trio')
  const { to } = target
  assert.equal(await copyBuiltSets({ from: dist.dir, to }), [])
  assert.equal(await copyBuiltSets({ from: join(dist.dir, 'missing'), to }), [])
  assert.is(await stat(to).catch(() => null), null)
})

test('what was built anew replaces the copy; what is the same stays as it is', async () => {
  await using dist = await makeBootFolder()
  await using target = await makeTarget()
  await dist.putTrio('1.0.0')
  const [from, { to }] = [dist.dir, target]
  await copyBuiltSets({ from, to })
  const copyOf = (part: string) => join(to, partName('1.0.0', part))
  const kept = await stat(copyOf('vmlinuz'))
  await writeFile(join(from, partName('1.0.0', 'initrd')), 'INITRD 1.0.0')
  await utimes(join(from, partName('1.0.0', 'initrd')), 2000, 2000)
  await copyBuiltSets({ from, to })
  assert.is(await readFile(copyOf('initrd'), 'utf8'), 'INITRD 1.0.0')
  assert.is((await stat(copyOf('vmlinuz'))).ino, kept.ino)
})

test.run()
