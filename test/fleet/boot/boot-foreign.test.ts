/** Sets of another system in the boot directory: told by their initrd, set aside, never in force. */
import { spawnSync } from 'node:child_process'
import { rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { renderNewc, type Entry } from '#build/initrd/newc.ts'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { makeBootFolder, partName, type TestBootFolder } from '#test/support/server/boot-folder.ts'
import { makeBytes } from '#test/support/collect.ts'
import { faultOf } from '#test/support/server/state.ts'

const test = suite('sets of another system')

const file = (name: string, bytes: Uint8Array): Entry => ({
  kind: 'file',
  name,
  mode: 0o644,
  bytes,
})
const xz = (bytes: Buffer) =>
  spawnSync('xz', ['-c', '--check=crc32'], { input: bytes, maxBuffer: 2 ** 26 }).stdout

const MICROCODE = renderNewc([file('kernel/x86/microcode/GenuineIntel.bin', makeBytes(9000))], 0)
const FOREIGN = renderNewc(
  [file('conf/initramfs.conf', Buffer.from('BOOT=live\n')), file('scripts/live', makeBytes(3e5))],
  0,
)
const OURS = renderNewc(
  [file('bin/busybox', makeBytes(200_001)), file('etc/root.manifest', Buffer.from('0 1 root\n'))],
  0,
)
const behindMicrocode = (main: Buffer) => Buffer.concat([MICROCODE, main])

/** A trio of this version whose initrd holds these bytes. */
async function putTrio(folder: TestBootFolder, version: string, initrd: Buffer) {
  await folder.putTrio(version)
  const path = join(folder.dir, partName(version, 'initrd'))
  await writeFile(path, initrd)
  await utimes(path, 1000, 1000)
}

const ASIDE: readonly (readonly [string, Buffer])[] = [
  ['plain', FOREIGN],
  ['gzip', gzipSync(FOREIGN)],
  ['zstd', zstdCompressSync(FOREIGN)],
  ['xz', xz(FOREIGN)],
  ['gzip behind microcode', behindMicrocode(gzipSync(FOREIGN))],
  ['zstd behind microcode', behindMicrocode(zstdCompressSync(FOREIGN))],
  ['xz behind microcode', behindMicrocode(xz(FOREIGN))],
  ['two archives, one compressed stream', zstdCompressSync(behindMicrocode(FOREIGN))],
]
for (const [name, initrd] of ASIDE) {
  test(`another system's initrd, ${name}: an older set of ours is in force`, async () => {
    await using folder = await makeBootFolder()
    await folder.putTrio('1.0.0')
    await putTrio(folder, '1.2.0', zstdCompressSync(OURS))
    await putTrio(folder, '9.9.9', initrd)
    await using files = await folder.open()
    assert.is(files.active().x86_64?.version, '1.2.0')
    assert.equal(
      files.sets().map(({ version }) => version),
      ['1.2.0', '1.0.0'],
    )
    assert.equal(
      files.setAside().map(({ arch, version }) => [arch, version]),
      [['x86_64', '9.9.9']],
    )
    assert.match(files.setAside()[0]?.reason ?? '', /9\.9\.9\.initrd has no etc\/root\.manifest/)
  })
}

const COUNTED: readonly (readonly [string, Buffer])[] = [
  ['ours', zstdCompressSync(OURS)],
  ['ours, plain', OURS],
  ['ours behind microcode, xz', behindMicrocode(xz(OURS))],
  [
    'ours with ./ before its names',
    gzipSync(renderNewc([file('./etc/root.manifest', Buffer.from('0 1 root'))], 0)),
  ],
  ['lz4, which nobody here reads', behindMicrocode(Buffer.from('02214c18aabbccdd', 'hex'))],
  ['cut off', FOREIGN.subarray(0, 100_000)],
  ['zstd that is cut off', zstdCompressSync(FOREIGN).subarray(0, 100_000)],
  ['damaged', Buffer.concat([MICROCODE, gzipSync(FOREIGN).fill(0x55, 100, 9000)])],
  ['something behind it', Buffer.concat([gzipSync(FOREIGN), makeBytes(5000)])],
  ['nothing', Buffer.alloc(0)],
  ['zeros', Buffer.alloc(4096)],
  ['a text', Buffer.from('initrd 9.9.9')],
]
for (const [name, initrd] of COUNTED) {
  test(`an initrd that is ours, or cannot be read to its end, counts: ${name}`, async () => {
    await using folder = await makeBootFolder()
    await folder.putTrio('1.0.0')
    await putTrio(folder, '9.9.9', initrd)
    await using files = await folder.open()
    assert.is(files.active().x86_64?.version, '9.9.9')
    assert.equal(files.setAside(), [])
  })
}

test('it is read and named once, and counts after it was replaced', async () => {
  await using folder = await makeBootFolder()
  await putTrio(folder, '9.9.9', gzipSync(FOREIGN))
  const said: string[] = []
  await using files = await folder.open({ onSetAside: ({ reason }) => void said.push(reason) })
  for (const _ of [1, 2, 3]) await files.look()
  assert.equal([files.active().x86_64, said.length], [null, 1])
  // Same length, same time: the same file, which is not read again.
  await putTrio(folder, '9.9.9', Buffer.alloc(gzipSync(FOREIGN).length))
  await files.look()
  assert.equal([files.active().x86_64, said.length], [null, 1])
  await putTrio(folder, '9.9.9', gzipSync(OURS))
  await files.look()
  assert.equal([files.active().x86_64?.version, files.setAside().length], ['9.9.9', 0])
})

test('it can neither be put in force nor installed, and the record does not bring it back', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  {
    await using files = await folder.open()
    await putTrio(folder, '9.9.9', Buffer.from('cannot be read'))
    await files.use({ arch: 'x86_64', version: '9.9.9' })
    assert.is(files.active().x86_64?.version, '9.9.9')
  }
  await putTrio(folder, '9.9.9', gzipSync(FOREIGN))
  await using files = await folder.open()
  assert.is(files.active().x86_64?.version, '1.0.0')
  const used = await faultOf(files.use({ arch: 'x86_64', version: '9.9.9' }))
  assert.is(used.code, 'conflict')
  assert.match(used.message, 'etc/root.manifest')
  const staged = await files.stage()
  for (const part of TRIO) await writeFile(join(staged, partName('2.0.0', part)), 'any')
  await writeFile(join(staged, partName('2.0.0', 'initrd')), zstdCompressSync(FOREIGN))
  const installed = await faultOf(files.install(staged, { x86_64: '2.0.0' }, 1))
  assert.is(installed.code, 'input-invalid')
  assert.match(installed.message, 'etc/root.manifest')
  await rm(staged, { recursive: true })
  assert.is(files.active().x86_64?.version, '1.0.0')
  assert.not((await folder.names()).includes(partName('2.0.0', 'initrd')))
})

test('what unpacks to more than the limit is not read to its end, and counts', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  // One file of 2 GiB; what comes after it would prove that the initrd is another system's.
  const head = renderNewc([file('big', Buffer.alloc(0))], 0).subarray(0, 116)
  head.write('80000000', 54, 'latin1')
  const zeros = zstdCompressSync(Buffer.alloc(64 * 2 ** 20))
  const frames = Array.from({ length: 32 }, () => zeros)
  const initrd = [zstdCompressSync(head), ...frames, zstdCompressSync(FOREIGN)]
  await putTrio(folder, '9.9.9', Buffer.concat(initrd))
  await using files = await folder.open()
  while (files.active().x86_64?.version !== '9.9.9') await files.look()
  assert.equal(files.setAside(), [])
})

test.run()
