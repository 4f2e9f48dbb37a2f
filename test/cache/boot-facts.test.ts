/** What images start from that are read only from their start: the cache finds it out, and servers use it. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, open, readFile, rename, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createBootFacts } from '#cache/store/boot-facts.ts'
import { seal } from '#engine/disk/rules/partition-tables.ts'
import { BootRecordSchema } from '#engine/bootable/rules/boot-record.ts'
import { createDecoders } from '#engine/image/formats.ts'
import { createChanges } from '#kit/host/changes.ts'
import { createRecords } from '#kit/host/records.ts'
import { createShell } from '#kit/host/shell.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { readImageBoot } from '#engine/bootable/image-boot.ts'
import { createMisfitFinder } from '#engine/bootable/misfit-finder.ts'
import type { FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import { openFileSource } from '#engine/image/sources/source.ts'
import { makeShimImage } from '#test/support/disk/shim-image.ts'
import { makeFolder, serveCache, until } from '#test/support/server/image-cache.ts'

const test = suite('what images of the cache start from')

const PACKERS = {
  'img.xz': ['xz', '-0', '--stdout'],
  'img.gz': ['gzip', '-1', '--stdout'],
  'img.bz2': ['bzip2', '-1', '--stdout'],
  'img.zst': ['zstd', '-1', '--quiet', '--stdout'],
} as const

const keys = (name: string) => ({
  certificates: [{ fingerprint: '0'.repeat(64), name, subject: name }],
  digests: '',
  others: 0,
})
const FIRMWARE: FirmwareFacts = {
  kind: 'uefi',
  processor: 'x64',
  secure_boot: true,
  allowed: keys('lab'),
  revoked: { certificates: [], digests: '', others: 0 },
  sbat_level: null,
}

const ENTRY = {
  ref: '0'.repeat(64),
  name: 'a',
  src: 'a.img',
  resolvedSrc: null,
  arch: null,
  sizeBytes: null,
  description: null,
}

async function awaitFacts(url: string): Promise<unknown> {
  for (let tries = 0; tries < 600; tries += 1) {
    const answer = await fetch(url)
    if (answer.status === 200) return await answer.json()
    await answer.arrayBuffer()
    await sleep(50)
  }
  throw new Error(`${url} was never known`)
}

test('of each format that cannot be entered, and a server that asks', async () => {
  await using folder = await makeFolder()
  const image = join(folder.path, 'a.raw')
  makeShimImage(image)
  await using source = await openFileSource(image)
  const boot = await readImageBoot(source, 'img')
  assert.is(boot?.programs.length, 1)
  const offered = join(folder.path, 'cache')
  await using served = await serveCache(offered)
  for (const [format, argv] of Object.entries(PACKERS)) {
    const path = join(folder.path, `packed.${format}`)
    execFileSync('sh', ['-c', '"$@" <"$IN" >"$OUT"', 'sh', ...argv], {
      env: { ...process.env, IN: image, OUT: path },
    })
    const bytes = await readFile(path)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    await rename(path, join(offered, `a.${format}`))
    assert.equal(await awaitFacts(`${served.base}/catalog/boot/${sha256}`), { boot }, format)
    const finder = createMisfitFinder({ env: {}, cacheUrl: () => served.base })
    const url = `${served.base}/files/a.${format}`
    const entry = { ...ENTRY, url, format, sha256 }
    assert.match((await finder.refuse(entry, { firmware: FIRMWARE })) ?? '', 'Not armed')
  }
  assert.is((await fetch(`${served.base}/catalog/boot/${'0'.repeat(64)}`)).status, 404)
})

test('what lies too far behind, or is damaged, is not known', async () => {
  await using folder = await makeFolder()
  const image = join(folder.path, 'far.raw')
  execFileSync('sh', [
    '-ec',
    `truncate -s 18G "$0"
    printf 'label: gpt\\nstart=35000000, size=120000, type=uefi\\n' | sfdisk -q "$0"
    dd if="$0" bs=1M count=2 status=none | xz -0 >"$1/far.img.xz"
    rm "$0"`,
    image,
    folder.path,
  ])
  const bytes = await readFile(join(folder.path, 'far.img.xz'))
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const offered = join(folder.path, 'cache')
  await using served = await serveCache(offered)
  await rename(join(folder.path, 'far.img.xz'), join(offered, 'far.img.xz'))
  assert.equal(await awaitFacts(`${served.base}/catalog/boot/${sha256}`), { boot: null })
})

test('a table that lies, a FAT that was not looked into, and a failure that passes', async () => {
  await using folder = await makeFolder()
  const offered = join(folder.path, 'cache')
  await using served = await serveCache(offered)
  const scratch = join(offered, '.cache/boot-look')
  await mkdir(scratch)
  const image = join(folder.path, 'a.raw')
  const offer = async (name: string, change: (bytes: Buffer) => void) => {
    makeShimImage(image)
    const bytes = await readFile(image)
    change(bytes)
    bytes.writeUInt32LE(crc32(bytes.subarray(1024, 1024 + 128 * 128)), 512 + 88)
    seal(bytes.subarray(512, 512 + 92))
    const packed = execFileSync('xz', ['-0'], { input: bytes, maxBuffer: 2 ** 28 })
    await writeFile(join(folder.path, name), packed)
    await rename(join(folder.path, name), join(offered, name))
    return `${served.base}/catalog/boot/${createHash('sha256').update(packed).digest('hex')}`
  }
  const lying = await offer('lying.img.xz', (bytes) => {
    bytes.copy(bytes, 1024 + 128, 1024, 1024 + 128)
    bytes.writeBigUInt64LE(2n ** 40n, 1024 + 128 + 32)
    bytes.writeBigUInt64LE(1n, 1024 + 128 + 40)
  })
  // Of basic data.
  const other = await offer('other.img.xz', (bytes) =>
    bytes.write('a2a0d0ebe5b9334487c068b6b72699c7', 1024, 'hex'),
  )
  await until(() => served.cache.rows().every(({ state }) => state === 'ready'))
  await sleep(300)
  assert.is((await fetch(other)).status, 404)
  await rmdir(scratch)
  assert.equal(await awaitFacts(lying), { boot: null })
  const facts = BootRecordSchema.parse(await awaitFacts(other))
  assert.equal([facts.boot?.programs, facts.boot?.isSearched], [[], false])
})

test('what is changed while it is read is read again', async () => {
  await using folder = await makeFolder()
  const image = join(folder.path, 'a.raw')
  makeShimImage(image)
  execFileSync('xz', ['-0', image])
  const changes = createChanges()
  const unknown = { error: null, download: null, progress: null, machines: null, addedAt: null }
  const never = { lookedAt: null, movedAt: null, usedAt: null, isPinned: false }
  const none = { resolved_src: null, arch: null, size_bytes: null, description: null }
  const named = { ...none, netboot_ref: null, name: 'a', src: 'a', format: 'img.xz' }
  const entry = { ...named, sha256: '0'.repeat(64) }
  let looks = 0
  await using facts = await createBootFacts({
    records: createRecords(join(folder.path, 'records')),
    changes,
    data: folder.path,
    decoders: createDecoders({ shell: createShell({ env: {} }) }),
    rows: () => [{ entry, kind: 'file', fileName: 'a', state: 'ready', ...unknown, ...never }],
    async open() {
      looks += 1
      return { handle: await open(`${image}.xz`), isStill: async () => looks > 1 }
    },
    reserve: async () => undefined,
    release() {},
    againMs: 1,
    log: { warn() {} },
  })
  await until(() => {
    changes.announce({ topic: 'catalog' })
    return facts.find(entry.sha256) !== null
  })
  assert.is(looks, 2)
})

test('a cache that does not answer holds up many questions no longer than one', async () => {
  await using silent = await startHostileServer(() => undefined)
  const finder = createMisfitFinder({ env: {}, cacheUrl: () => silent.origin, refusalMs: 1000 })
  const began = performance.now()
  for (const digit of ['1', '2', '3', '4', '5']) {
    const url = `${silent.origin}/files/${digit}.img.xz`
    const entry = { ...ENTRY, url, format: 'img.xz', sha256: digit.repeat(64) }
    assert.is(await finder.refuse(entry, { firmware: FIRMWARE }), null)
  }
  assert.ok(performance.now() - began < 4900)
})

test.run()
