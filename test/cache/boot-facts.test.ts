/** What images start from that are read only from their start: the cache finds it out, and servers use it. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readImageBoot } from '#engine/bootable/image-boot.ts'
import { createMisfitFinder } from '#engine/bootable/misfit-finder.ts'
import type { FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import { openFileSource } from '#engine/image/sources/source.ts'
import { makeShimImage } from '#test/support/disk/shim-image.ts'
import { makeFolder, serveCache } from '#test/support/server/image-cache.ts'

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

test.run()
