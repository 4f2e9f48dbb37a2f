import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { ipxeFile, secureBootFiles } from '#appliance/assets.ts'
import { type Entry, renderNewc } from '#build/initrd/newc.ts'
import { createLiveFiles } from '#fleet/boot/boot-files.ts'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { makeBytes } from '#test/support/collect.ts'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import {
  inChunks,
  makeBootFolder,
  partName,
  sha256,
  type TestBootFolder,
} from '#test/support/server/boot-folder.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
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

test('the names that firmware and shim ask for stand for the newest loader of a release', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-live-files-'))
  try {
    const files = await createLiveFiles(dir)
    assert.is(await files.alias?.('shimx64.efi'), null)
    for (const version of ['1.9.0', '1.10.0']) {
      const { shim, grub } = secureBootFiles('x86_64', version)
      for (const name of [shim, grub, ipxeFile('x86_64', version)]) {
        await writeFile(join(dir, name), 'loader')
      }
    }
    const { shim, grub } = secureBootFiles('x86_64', '1.10.0')
    assert.is(await files.alias?.('shimx64.efi'), shim)
    assert.is(await files.alias?.('grubx64.efi'), grub)
    assert.is(await files.alias?.('ipxe.efi'), ipxeFile('x86_64', '1.10.0'))
  } finally {
    await rm(dir, { recursive: true })
  }
})

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

const run = $({ quiet: true, verbose: false })

test('an upload that says nothing of its length fails when the disk is full, and leaves nothing', async () => {
  await using server = await createEarlierServer()
  await using undo = new AsyncDisposableStack()
  await run`mount -t tmpfs -o size=64m tmpfs ${server.images}`
  undo.defer(async () => {
    await run`umount ${server.images}`
  })
  const ask = await server.operator()
  await server.putImage('a.img', 'whole')
  const endless = new ReadableStream({
    pull(controller) {
      controller.enqueue(new Uint8Array(2 ** 20))
    },
  })
  const init: RequestInit & { duplex: 'half' } = { method: 'PUT', body: endless, duplex: 'half' }
  const answer = await ask('/images/a.img', init)
  assert.is(answer.status, 507)
  assert.match((await answer.json()).detail, /free/)
  assert.is(await (await ask('/images/a.img')).text(), 'whole')
  assert.equal(await readdir(server.images), ['a.img'])
})

const INSTALLER = join(import.meta.dirname, '../../support/server/boot-installer.ts')

/** The number of the last installation that was acknowledged before it was killed. */
async function runUntilKilled(dir: string, ms: number): Promise<number> {
  const child = spawn(process.execPath, [INSTALLER, dir], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    let last = -1
    for await (const line of createInterface(child.stdout)) {
      if (last < 0) void sleep(ms).then(() => child.kill('SIGKILL'))
      last = Number(line.slice('installed '.length))
    }
    return last
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}

test('killed at any moment, the set in force is whole: the last one, or the one that was under way', async () => {
  await using folder = await makeBootFolder()
  const random = createSeededRandom(3)
  for (let round = 0; round < KILLS; round += 1) {
    const last = await runUntilKilled(folder.dir, random() * 70)
    await using files = await folder.open()
    const set = files.active().x86_64
    assert.ok(set !== null)
    const texts = await Promise.all(
      [set.vmlinuz, set.initrd, set.squashfs].map((name) =>
        readFile(join(folder.dir, name), 'utf8'),
      ),
    )
    assert.is(new Set(texts).size, 1, texts.join(' '))
    assert.ok([last, last + 1].includes(Number(texts[0])), `${last}: ${texts.join(' ')}`)
    const left = (await folder.names()).filter((name) => /^\.(staged|install|upload)-/.test(name))
    assert.equal(left, [])
  }
})

test.run()
