import { mkdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { inChunks, makeBootFolder, partName, sha256 } from '#test/support/server/boot-folder.ts'
import { until } from '#test/support/server/image-cache.ts'
import { failureOf, faultOf } from '#test/support/server/state.ts'

const test = suite('boot files in their folder')

/** Stages a trio whose files hold `text`. */
async function stageTrio(
  folder: { stage(): Promise<string> },
  version: string,
  text = version,
): Promise<string> {
  const staged = await folder.stage()
  for (const part of TRIO) await writeFile(join(staged, partName(version, part)), text)
  return staged
}

async function* cutOff() {
  yield Buffer.from('half')
  throw new Error('hung up')
}

test('a trio copied by hand is active, the newest one, with what its list says', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.9.0')
  await folder.putTrio('1.10.0')
  await folder.put(partName('2.0.0', 'vmlinuz'), 'no trio')
  await folder.putTrio('1.2.0', 'arm64')
  await using files = await folder.open()
  const { x86_64, arm64 } = files.active()
  assert.is(x86_64?.version, '1.10.0')
  assert.is(x86_64?.squashfs, partName('1.10.0', 'squashfs'))
  assert.is(x86_64?.squashfsSha256, sha256('squashfs 1.10.0'))
  assert.is(arm64?.version, '1.2.0')
  assert.is(await files.has(partName('1.2.0', 'initrd', 'arm64')), true)
  assert.is(await files.has('nothing'), false)
})

test('a trio counts at a start with a clock that was set back, or ahead', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.9.0')
  for (const time of [0, 990_000, 1_003_000, 1_700_000_000_000]) {
    await using files = await folder.open({ now: () => new Date(time) })
    assert.is(files.active().x86_64?.version, '1.9.0', `${time}`)
  }
})

test('a file that is copied from a host whose clock is ahead counts once it rests', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  await using files = await folder.open()
  await folder.putTrio('2.0.0')
  const ahead = new Date(Date.now() + 60_000)
  for (const part of TRIO) await utimes(join(folder.dir, partName('2.0.0', part)), ahead, ahead)
  await files.look()
  assert.is(files.active().x86_64?.version, '1.0.0')
  await until(async () => {
    await files.look()
    return files.active().x86_64?.version === '2.0.0'
  })
})

test('a file that is still being copied does not count', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  await folder.putTrio('2.0.0')
  await writeFile(join(folder.dir, partName('2.0.0', 'squashfs')), 'half')
  await using files = await folder.open()
  assert.is(files.active().x86_64?.version, '1.0.0')
  await folder.put(partName('2.0.0', 'squashfs'), 'squashfs 2.0.0')
  await files.look()
  assert.is(files.active().x86_64?.version, '2.0.0')
})

test('uploads are there whole or not at all', async () => {
  await using folder = await makeBootFolder()
  await using files = await folder.open()
  for (const part of TRIO) {
    assert.is(await files.save(partName('1.0.0', part), inChunks('0123456789'), 100), 10)
  }
  assert.is(files.active().x86_64?.squashfsSha256, null)
  const before = await folder.names()
  const name = partName('1.0.0', 'squashfs')
  assert.is((await faultOf(files.save(name, inChunks('x'.repeat(101)), 100))).code, 'too-large')
  assert.is((await failureOf(files.save(name, cutOff(), 100))).message, 'hung up')
  await mkdir(join(folder.dir, 'folder'))
  assert.is((await faultOf(files.save('folder', inChunks('x'), 100))).code, 'conflict')
  await rm(join(folder.dir, 'folder'), { recursive: true })
  assert.equal(await folder.names(), before)
  assert.is(await readFile(join(folder.dir, name), 'utf8'), '0123456789')
})

test('an upload that its list of checksums does not name is refused, and replaces nothing', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  await using files = await folder.open()
  const name = partName('1.0.0', 'squashfs')
  const before = await folder.names()
  assert.is((await faultOf(files.save(name, inChunks('another'), 100))).code, 'digest-mismatch')
  assert.equal(await folder.names(), before)
  assert.is(await readFile(join(folder.dir, name), 'utf8'), 'squashfs 1.0.0')
  assert.is(await files.save(name, inChunks('squashfs 1.0.0'), 100), 14)
})

test('an installed set is active, those before it are kept and then removed', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  {
    await using files = await folder.open()
    for (const version of ['1.1.0', '0.9.0', '1.2.0']) {
      await files.install(await stageTrio(files, version), { x86_64: version }, 2)
      assert.is(files.active().x86_64?.version, version)
    }
    const kept = files
      .sets()
      .map(({ version, isActive, isPrevious }) => ({ version, isActive, isPrevious }))
    assert.equal(kept, [
      { version: '1.2.0', isActive: true, isPrevious: false },
      { version: '1.1.0', isActive: false, isPrevious: false },
      { version: '0.9.0', isActive: false, isPrevious: true },
    ])
    await files.use({ arch: 'x86_64', version: '0.9.0' })
    await folder.putTrio('9.0.0')
    await files.look()
    assert.is(files.active().x86_64?.version, '0.9.0', 'what is on record stays')
    assert.is(files.sets().find(({ isPrevious }) => isPrevious)?.version, '1.2.0')
    const fault = await faultOf(files.use({ arch: 'arm64', version: '1.2.0' }))
    assert.is(fault.code, 'not-found')
  }
  await using again = await folder.open()
  assert.is(again.active().x86_64?.version, '0.9.0')
  await rm(join(folder.dir, partName('0.9.0', 'initrd')))
  await again.look()
  assert.is(again.active().x86_64?.version, '9.0.0', 'a set with a hole is never named')
})

test('what an installation needs is never removed, however few are kept', async () => {
  await using folder = await makeBootFolder()
  await using files = await folder.open()
  await files.install(await stageTrio(files, '1.0.0'), { x86_64: '1.0.0' }, 0)
  await files.install(await stageTrio(files, '1.0.0', 'anew'), { x86_64: '1.0.0' }, 0)
  const { squashfs = '' } = files.active().x86_64 ?? {}
  assert.is(await readFile(join(folder.dir, squashfs), 'utf8'), 'anew')
  await files.install(await stageTrio(files, '2.0.0'), { x86_64: '2.0.0' }, 0)
  assert.equal(
    files.sets().map(({ version }) => version),
    ['2.0.0'],
  )
})

test('an installation that was cut off is finished or forgotten at the next start', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  await mkdir(join(folder.dir, '.staged-x'))
  await writeFile(join(folder.dir, '.staged-x', partName('2.0.0', 'vmlinuz')), 'x')
  await writeFile(join(folder.dir, '.upload-x'), 'x')
  {
    await using files = await folder.open()
    assert.is(files.active().x86_64?.version, '1.0.0')
    assert.ok((await folder.names()).every((name) => !name.startsWith('.')))
    // As it is between the commit and the end: one file has its place already.
    await stageTrio(
      {
        stage: () =>
          mkdir(join(folder.dir, '.install-x'), { recursive: true }).then(() =>
            join(folder.dir, '.install-x'),
          ),
      },
      '2.0.0',
    )
    await rm(join(folder.dir, '.install-x', partName('2.0.0', 'vmlinuz')))
    await folder.put(partName('2.0.0', 'vmlinuz'), '2.0.0')
    const record = {
      active: { x86_64: '2.0.0', arm64: null },
      earlier: { x86_64: ['1.0.0'], arm64: [] },
    }
    await writeFile(join(folder.dir, '.install-x', '.active.json'), JSON.stringify(record))
  }
  await using files = await folder.open()
  assert.is(files.active().x86_64?.version, '2.0.0')
  assert.equal(
    (await folder.names()).filter((name) => name.startsWith('.')),
    ['.active.json'],
  )
  assert.equal(
    (await files.list()).filter(({ name }) => name.includes('2.0.0')).map(({ name }) => name),
    TRIO.map((part) => partName('2.0.0', part)).toSorted(),
  )
})

test('a record that was tampered with counts as none', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  for (const text of ['', '{', '[]', '{"active":{"x86_64":"../../etc/passwd","arm64":null}}']) {
    await writeFile(join(folder.dir, '.active.json'), text)
    await using files = await folder.open()
    assert.is(files.active().x86_64?.version, '1.0.0')
  }
})

test('ipxe.efi stands for the newest iPXE of a release', async () => {
  await using folder = await makeBootFolder()
  await using files = await folder.open()
  assert.is(await files.alias?.('ipxe.efi'), null)
  await folder.put('flasher-ipxe-x86_64-v1.9.0.efi', 'x')
  await folder.put('flasher-ipxe-x86_64-v1.10.0.efi', 'x')
  await folder.put('flasher-ipxe-arm64-v1.2.0.efi', 'x')
  await files.look()
  assert.is(await files.alias?.('ipxe.efi'), 'flasher-ipxe-x86_64-v1.10.0.efi')
  assert.is(await files.alias?.('ipxe-arm64.efi'), 'flasher-ipxe-arm64-v1.2.0.efi')
  assert.is(await files.alias?.('constructor'), null)
})

test('the names of shim and GRUB stand for the newest of a release', async () => {
  await using folder = await makeBootFolder()
  await folder.put('flasher-secureboot-x86_64-v1.9.0.shim.efi', 'x')
  await folder.put('flasher-secureboot-x86_64-v1.10.0.shim.efi', 'x')
  await folder.put('flasher-secureboot-x86_64-v1.10.0.grub.efi', 'x')
  await folder.put('flasher-secureboot-arm64-v1.10.0.shim.efi', 'x')
  await using files = await folder.open()
  assert.equal(
    ['shimx64.efi', 'grubx64.efi', 'shimaa64.efi', 'grubaa64.efi'].map((name) =>
      files.alias?.(name),
    ),
    [
      'flasher-secureboot-x86_64-v1.10.0.shim.efi',
      'flasher-secureboot-x86_64-v1.10.0.grub.efi',
      'flasher-secureboot-arm64-v1.10.0.shim.efi',
      null,
    ],
  )
})

test.run()
