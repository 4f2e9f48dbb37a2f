import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import { createBootFiles } from '#fleet/boot/boot-files.ts'
import { createReleases } from '#fleet/boot/releases.ts'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { FORMS, startHosting } from '#test/support/http/hosting-site.ts'
import { REPOSITORY, type SiteOptions, startReleaseSite } from '#test/support/http/release-site.ts'
import { makeReleaseFolder, makeSigningKey } from '#test/support/release-folder.ts'
import { makeBootFolder, partName } from '#test/support/server/boot-folder.ts'
import {
  BY,
  openFetchRecords,
  openReleaseFixture as openFixture,
  openReleaseFixture,
} from '#test/support/server/release-fixture.ts'
import { createStateFolder, faultOf } from '#test/support/server/state.ts'

const test = suite('releases')
async function* endless() {
  for (;;) yield Buffer.alloc(1_000_000)
}

/** A folder with version 1.0.0 by hand, a site, and a fixture that fetches from it. */
async function fetchOnce(options: SiteOptions, tag?: string) {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  await using site = await startReleaseSite(options)
  await using fixture = await openFixture(folder.dir, { site: site.origin })
  const job = await fixture.fetch(tag ?? site.tag)
  return {
    job,
    site,
    active: fixture.bootFiles.active().x86_64,
    alias: await fixture.bootFiles.alias?.('ipxe.efi'),
    names: await folder.names(),
    list: await readFile(join(folder.dir, partName('1.2.3', 'sha256')), 'utf8').catch(() => ''),
    kinds: await fixture.kinds(),
    seen: site.seen.map(({ url }) => url),
  }
}

test('a release is found, fetched, checked and put in force', async () => {
  const { job, site, active, alias, kinds } = await fetchOnce({})
  assert.is(job.error, null)
  assert.is(job.status, 'completed')
  assert.is(job.base_url, `${site.origin}/${REPOSITORY}/releases/download/v1.2.3/`)
  assert.is(job.bytes_done, job.bytes_total)
  assert.equal(
    job.artifacts.map(({ name, status }) => [name, status]),
    [...TRIO.map((part) => partName('1.2.3', part)), site.ipxe].map((name) => [name, 'completed']),
  )
  assert.is(active?.version, '1.2.3')
  assert.is(active?.squashfsSha256?.length, 64)
  assert.is(alias, site.ipxe)
  assert.equal(kinds, [
    'netboot.artifacts.fetch.requested',
    'netboot.artifacts.fetch.started',
    'netboot.artifacts.fetched',
  ])
})

test('every place where sites keep releases', async () => {
  const rows = [
    [`/${REPOSITORY}/releases/latest/download/`, 'latest'],
    [`/${REPOSITORY}/releases/v1.2.3/download/`, 'v1.2.3'],
    ['/releases/v1.2.3/download/', 'v1.2.3'],
    ['/releases/latest/download/', 'latest'],
  ] as const
  for (const [folder, tag] of rows) {
    const { job, active } = await fetchOnce({ folder }, tag)
    assert.is(job.status, 'completed', `${folder}: ${job.error}`)
    assert.is(active?.version, '1.2.3')
  }
})

test('whatever is wrong with a release, the old set stays in force and nothing is left', async () => {
  const squashfs = partName('1.2.3', 'squashfs')
  const list = partName('1.2.3', 'sha256')
  const rows: readonly (readonly [SiteOptions, RegExp])[] = [
    [
      { changed: { [squashfs]: Buffer.alloc(200_002) } },
      /squashfs has the digest [0-9a-f]{64}, but/,
    ],
    [{ changed: { [squashfs]: Buffer.alloc(300_000) } }, /longer than/],
    [{ changed: { [squashfs]: 'short' } }, /squashfs has the digest/],
    [{ changed: { [squashfs]: null } }, /squashfs \(HTTP 404\)/],
    [{ changed: { [list]: `${'0'.repeat(64)}  ${squashfs}\n` } }, /does not list/],
    [{ changed: { [list]: '' } }, /does not list/],
    [{ changed: { 'release.toml': null, [list]: null } }, /was not found: .*HTTP 404/],
    [{ manifest: () => '<html>' }, /line 1, column/],
    [{ manifest: (text) => text.replace(squashfs, 'other') }, /does not list .*squashfs/],
    [{ manifest: (text) => text.replace(squashfs, '../../x') }, /artifacts.* is invalid/],
    [{ manifest: (text) => text.replace('tag = "v1.2.3"', 'tag = "v9"') }, /manifest of v9/],
  ]
  for (const [options, message] of rows) {
    const { job, active, names, kinds } = await fetchOnce(options)
    assert.is(job.status, 'failed')
    assert.match(job.error ?? '', message)
    assert.is(active?.version, '1.0.0')
    assert.is(names.length, 4, names.join(' '))
    assert.is(kinds.at(-1), 'netboot.artifacts.fetch.failed')
  }
})

test('a release with its manifest alone is installed, with the list that it would have had', async () => {
  const name = partName('1.2.3', 'sha256')
  const { job, active, list } = await fetchOnce({ changed: { [name]: null } })
  assert.is(job.status, 'completed', job.error ?? '')
  assert.is(active?.version, '1.2.3')
  assert.match(list, /^[0-9a-f]{64}  flasher-netboot-pc-x86_64-v1\.2\.3\.vmlinuz\n/)
})

test('a connection that is cut is taken up where it ended', async () => {
  const name = partName('1.2.3', 'squashfs')
  const { job, site } = await fetchOnce({ cut: { name, after: 70_000 } })
  assert.is(job.status, 'completed', job.error ?? '')
  assert.is(site.cuts(), 1)
  assert.ok(site.seen.some(({ headers }) => /^bytes=[1-9]\d*-/.test(headers.range ?? '')))
})

test('one fetch of a tag at a time; cancelled in the middle, and fetched again', async () => {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  await using site = await startReleaseSite({ stall: partName('1.2.3', 'initrd') })
  await using fixture = await openFixture(folder.dir, { site: site.origin })
  const { releases } = fixture
  await releases.start('v1.2.3', BY)
  await releases.start('v1.2.3', BY)
  await releases.start('v9.9.9', BY)
  assert.equal(
    releases.jobs().map(({ tag }) => tag),
    ['v9.9.9', 'v1.2.3'],
  )
  assert.is((await releases.cancel('v9.9.9', BY))?.status, 'cancelled')
  while (site.held() === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  const cancelled = await releases.cancel('v1.2.3', BY)
  assert.is(cancelled?.status, 'cancelled')
  assert.match(cancelled?.error ?? '', /was cancelled/)
  assert.is(await releases.cancel('v0.0.1', BY), null)
  assert.is((await releases.cancel('v1.2.3', BY))?.status, 'cancelled')
  const names = (await folder.names()).filter((name) => name !== '.fetching')
  assert.is(names.length, 4, names.join(' '))
  assert.is(fixture.bootFiles.active().x86_64?.version, '1.0.0')
  assert.is((await fixture.kinds()).filter((kind) => kind.endsWith('.cancelled')).length, 2)
})

test('a fetch that was cancelled is taken up where it ended, also after a restart', async () => {
  await using folder = await makeBootFolder()
  const initrd = partName('1.2.3', 'initrd')
  let site = await startReleaseSite({ stall: initrd })
  {
    await using stalled = site
    await using fixture = await openFixture(folder.dir, { site: stalled.origin })
    await fixture.releases.start('v1.2.3', BY)
    while (stalled.held() === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    const received = () => fixture.releases.jobs()[0]?.artifacts.find(({ name }) => name === initrd)
    while (received()?.bytes_done !== 1000) await new Promise((resolve) => setTimeout(resolve, 5))
    await fixture.releases.cancel('v1.2.3', BY)
  }
  site = await startReleaseSite()
  await using whole = site
  await using fixture = await openFixture(folder.dir, { site: whole.origin })
  const job = await fixture.fetch('v1.2.3')
  assert.is(job.status, 'completed', job.error ?? '')
  assert.is(job.bytes_done, job.bytes_total)
  const asked = whole.seen.filter(({ method }) => method === 'GET').map(({ url }) => url ?? '')
  assert.not.ok(
    asked.some((url) => url.endsWith('.vmlinuz')),
    'it was there, whole',
  )
  const ranges = whole.seen
    .filter(({ url }) => url?.endsWith(initrd))
    .map(({ headers }) => headers.range)
  assert.ok(
    ranges.some((range) => range?.startsWith('bytes=1000-')),
    ranges.join(' '),
  )
  assert.not.ok((await folder.names()).includes('.fetching'))
})

test('what was fetched before and is wrong is fetched anew', async () => {
  await using folder = await makeBootFolder()
  await using site = await startReleaseSite()
  const name = partName('1.2.3', 'squashfs')
  const right = site.files.get(name) ?? Buffer.alloc(0)
  const part = join(folder.dir, '.fetching', createHash('sha256').update(right).digest('hex'))
  for (const wrong of [
    Buffer.alloc(500),
    Buffer.alloc(right.length),
    Buffer.alloc(right.length + 1),
  ]) {
    await mkdir(dirname(part), { recursive: true })
    await writeFile(part, wrong)
    await writeFile(join(dirname(part), 'of another release'), 'x')
    await using fixture = await openFixture(folder.dir, { site: site.origin })
    assert.is((await fixture.fetch('v1.2.3')).status, 'completed')
    assert.ok((await readFile(join(folder.dir, name))).equals(right))
    assert.not.ok((await folder.names()).includes('.fetching'))
  }
})

test('a tag can be fetched again, another one after it, and the one before put back', async () => {
  await using folder = await makeBootFolder()
  await using one = await startReleaseSite({ version: '1.2.3' })
  await using two = await startReleaseSite({ version: '2.0.0' })
  const settings = { site: one.origin }
  await using fixture = await openFixture(folder.dir, {
    get site() {
      return settings.site
    },
  })
  for (let times = 0; times < 2; times += 1) {
    assert.is((await fixture.fetch('v1.2.3')).status, 'completed')
  }
  settings.site = two.origin
  assert.is((await fixture.fetch('v2.0.0')).status, 'completed')
  assert.is(fixture.bootFiles.active().x86_64?.version, '2.0.0')
  await fixture.releases.use({ arch: 'x86_64', version: '1.2.3' }, BY)
  const { squashfs = '', version } = fixture.bootFiles.active().x86_64 ?? {}
  assert.is(version, '1.2.3')
  const there = await readFile(join(folder.dir, squashfs))
  assert.ok(there.equals(one.files.get(squashfs) ?? Buffer.alloc(0)))
})

test('without a site or a repository it says what is missing', async () => {
  await using folder = await makeBootFolder()
  for (const [settings, words] of [
    [{ site: '' }, /FLASHER_RELEASES_BASE_URL/],
    [{ site: 'http://127.0.0.1:1', repository: '' }, /FLASHER_BOOT_RELEASE_REPO/],
  ] as const) {
    await using fixture = await openFixture(folder.dir, settings)
    const fault = await faultOf(fixture.releases.start('latest', BY))
    assert.is(fault.code, 'conflict')
    assert.match(fault.message, words)
  }
})

test('a disk that is too small is said before, or when it is full, and nothing stays', async () => {
  if (process.getuid?.() !== 0) return
  const dir = await mkdtemp(join(tmpdir(), 'flasher-small-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=20m', 'tmpfs', dir])
  try {
    if (mounted.status !== 0) return
    await using site = await startReleaseSite({ bytes: 2_000_000 })
    await using fixture = await openFixture(dir, { site: site.origin })
    const job = await fixture.fetch(site.tag)
    assert.is(job.status, 'failed')
    assert.match(job.error ?? '', /free space|no space/)
    assert.equal(await fixture.bootFiles.list(), [])
    const fault = await faultOf(fixture.bootFiles.save('x', endless(), 2 ** 40))
    assert.is(fault.code, 'storage-full')
    assert.equal(await fixture.bootFiles.list(), [])
  } finally {
    spawnSync('umount', [dir])
    await rm(dir, { recursive: true })
  }
})

test('a fetch that a restart cut off is listed as failed, and can be started again', async () => {
  await using folder = await makeBootFolder()
  const records = await mkdtemp(join(tmpdir(), 'flasher-fetches-'))
  try {
    await using stalled = await startReleaseSite({ stall: partName('1.2.3', 'initrd') })
    const kept = await openFetchRecords(records)
    await using before = await openFixture(folder.dir, { site: stalled.origin }, kept)
    await before.releases.start('v1.2.3', BY)
    while (stalled.held() === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    // The next process starts with what this one has written so far.
    await kept[Symbol.asyncDispose]()
    await using site = await startReleaseSite()
    const found = await openFetchRecords(records)
    await using after = await openFixture(folder.dir, { site: site.origin }, found)
    const [job] = after.releases.jobs()
    assert.equal(
      [job?.tag, job?.status, job?.error],
      ['v1.2.3', 'failed', 'interrupted by a restart of the program'],
    )
    assert.is((await after.fetch('v1.2.3')).status, 'completed')
    const failed = (await after.journal.list({ limit: 100 })).filter(
      ({ kind }) => kind === 'netboot.artifacts.fetch.failed',
    )
    assert.equal(
      failed.map(({ subject_id, actor, summary }) => [subject_id, actor, summary]),
      [
        [
          'v1.2.3',
          'system',
          'Release v1.2.3 could not be fetched: interrupted by a restart of the program',
        ],
      ],
    )
  } finally {
    await rm(records, { recursive: true })
  }
})

const NO_MANIFEST = { 'release.toml': null }
const now = () => new Date()
const API = `/repos/${REPOSITORY}/releases/latest`

/** One fetch of `tag` into a folder that holds version 1.0.0. */
async function fetchBare(options: SiteOptions, tag: string) {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  await using site = await startReleaseSite({
    ...options,
    changed: { ...NO_MANIFEST, ...options.changed },
  })
  await using state = await createStateFolder()
  await using services = await state.open()
  await using bootFiles = await createBootFiles({ dir: folder.dir, now })
  await using releases = createReleases({
    ...services,
    bootFiles,
    sources: createSources({ env: {}, retryMs: 1 }),
    env: {},
    settings: () => ({
      site: site.origin,
      repository: REPOSITORY,
      tag: 'latest',
      keys: [],
      keep: 1,
    }),
    now,
  })
  await releases.start(tag, { actor: 'operator', ip: null })
  const job = await releases.awaitEnd(tag)
  if (job === null) throw new Error('no job')
  return { job, site, active: bootFiles.active().x86_64, names: await folder.names() }
}

const FOUND: readonly (readonly [string, SiteOptions, string])[] = [
  ['a tag', {}, 'v1.2.3'],
  ['a tag without a v', { folder: `/${REPOSITORY}/releases/download/1.2.3/` }, '1.2.3'],
  ['a tag, at another place', { folder: '/releases/v1.2.3/download/' }, 'v1.2.3'],
  ["latest, by the 302's tag", { redirects: true }, 'latest'],
  ['latest, by the JSON API', { api: API }, 'latest'],
  ['latest, by the JSON API below /api/v1', { api: `/api/v1${API}` }, 'latest'],
  [
    'latest, by the JSON API, where files lie below latest alone',
    { api: API, folder: `/${REPOSITORY}/releases/latest/download/` },
    'latest',
  ],
]
for (const [name, options, tag] of FOUND) {
  test(`is found and installed: ${name}`, async () => {
    const { job, site, active, names } = await fetchBare(options, tag)
    assert.is(job.status, 'completed', job.error ?? '')
    assert.is(active?.version, '1.2.3')
    assert.is(active?.squashfsSha256?.length, 64)
    assert.equal(
      job.artifacts.map(({ name: file, bytes_total }) => [file, bytes_total]),
      TRIO.map((part, at) => [partName('1.2.3', part), 200_000 + at]),
    )
    assert.is(job.base_url?.startsWith(site.origin), true)
    // The iPXE of the site has no checksum there, so it is left alone.
    assert.not(names.includes(site.ipxe))
  })
}

const [kernel, squashfs, list] = ['vmlinuz', 'squashfs', 'sha256'].map((part) =>
  partName('1.2.3', part),
)
const REFUSED: readonly (readonly [string, SiteOptions, string, RegExp])[] = [
  ['no list', { changed: { [list ?? '']: null } }, 'v1.2.3', /was not found: .*HTTP 404/],
  [
    'a list of other files',
    { changed: { [list ?? '']: `${'0'.repeat(64)}  other\n` } },
    'v1.2.3',
    /does not list .*vmlinuz/,
  ],
  ['no kernel', { changed: { [kernel ?? '']: null } }, 'v1.2.3', /vmlinuz.*HTTP 404/],
  [
    'other bytes',
    { changed: { [squashfs ?? '']: Buffer.alloc(200_002) } },
    'v1.2.3',
    /squashfs has the digest [0-9a-f]{64}, but/,
  ],
  [
    'a tag that is no version',
    { folder: `/${REPOSITORY}/releases/download/nightly/` },
    'nightly',
    /was not found/,
  ],
  ['latest, and nobody says which that is', {}, 'latest', /was not found/],
  [
    'latest, and the API says something else',
    { api: API, apiText: '<html>' },
    'latest',
    /was not found/,
  ],
  [
    'latest, and the API names no tag',
    { api: API, apiText: '{"tag_name":"../../x"}' },
    'latest',
    /was not found/,
  ],
]
for (const [name, options, tag, message] of REFUSED) {
  test(`is refused with the reason, and nothing changes: ${name}`, async () => {
    const { job, active, names } = await fetchBare(options, tag)
    assert.is(job.status, 'failed')
    assert.match(job.error ?? '', message)
    assert.is(active?.version, '1.0.0')
    assert.is(names.length, 4, names.join(' '))
  })
}

test('a manifest that is there and wrong is the reason, whatever lies beside it', async () => {
  const { job } = await fetchBare({ changed: { 'release.toml': '<html>' } }, 'v1.2.3')
  assert.match(job.error ?? '', /release\.toml cannot be used: line 1, column/)
})

type Site = Parameters<typeof startHosting>[0]
type Limits = NonNullable<Parameters<typeof openReleaseFixture>[3]>

interface Fetch extends Pick<Site, 'releases'> {
  readonly site?: Omit<Site, 'releases'>
  readonly tag: string
  readonly keys?: readonly string[]
  readonly limits?: Limits
}

/** One fetch into a folder that holds version 1.0.0. */
async function fetchFolder({ releases, site = {}, tag, keys = [], limits }: Fetch) {
  await using folder = await makeBootFolder()
  await folder.putTrio('1.0.0')
  await using hosting = await startHosting({ releases, ...site })
  const settings = { site: hosting.origin, keys }
  await using fixture = await openReleaseFixture(folder.dir, settings, undefined, limits)
  const job = await fixture.fetch(tag)
  return { job, active: fixture.bootFiles.active().x86_64?.version, names: await folder.names() }
}

for (const form of FORMS) {
  for (const repository of [REPOSITORY, '']) {
    test(`by tag and as the newest: ${form}, repository "${repository}"`, async () => {
      await using one = await makeReleaseFolder({ line: 'current', version: '1.2.3' })
      await using two = await makeReleaseFolder({ line: 'current', version: '1.3.0' })
      for (const [tag, version] of [
        ['v1.2.3', '1.2.3'],
        ['latest', '1.3.0'],
      ] as const) {
        const releases = [one, two]
        const { job, active } = await fetchFolder({ releases, site: { form, repository }, tag })
        assert.is(job.status, 'completed', job.error ?? '')
        assert.is(active, version)
      }
    })
  }
}

const SQUASHFS = 'flasher-netboot-pc-x86_64-v1.2.3.squashfs'
const QUICK: Limits = { textMs: 500, stallMs: 300 }

const TROUBLES: readonly (readonly [NonNullable<Site['trouble']>, RegExp])[] = [
  [{ name: SQUASHFS, kind: 'truncated' }, /squashfs has the digest [0-9a-f]{64}, but/],
  [{ name: SQUASHFS, kind: 'wrong' }, /squashfs has the digest [0-9a-f]{64}, but/],
  [{ name: SQUASHFS, kind: 'loop' }, /more than 10 redirects/],
  [{ name: SQUASHFS, kind: 'missing' }, /HTTP 404/],
  [{ name: SQUASHFS, kind: 'stall' }, /no data for 0\.3 s/],
  [{ name: 'release.toml', kind: 'loop' }, /more than 10 redirects/],
  [{ name: 'release.toml', kind: 'stall' }, /no answer within 0\.5 s/],
  [{ name: '.sha256', kind: 'truncated' }, /does not list/],
]

for (const [trouble, reason] of TROUBLES) {
  test(`${trouble.name} is ${trouble.kind}: the reason is said, and nothing changes`, async () => {
    await using release = await makeReleaseFolder({ line: 'current' })
    const limits = trouble.kind === 'stall' ? QUICK : {}
    const { job, active, names } = await fetchFolder({
      releases: [release],
      site: { trouble },
      tag: 'v1.2.3',
      limits,
    })
    assert.is(job.status, 'failed')
    assert.match(job.error ?? '', reason)
    assert.is(active, '1.0.0')
    assert.is(names.length, 4, names.join(' '))
  })
}

test('a signed release is fetched where its key is configured, and where none is', async () => {
  await using key = await makeSigningKey()
  await using other = await makeSigningKey()
  await using release = await makeReleaseFolder({ line: 'current', key: key.path })
  const releases = [release]
  for (const keys of [[], [key.publicKey], [other.publicKey, key.publicKey]]) {
    for (const tag of ['v1.2.3', 'latest']) {
      const { job, active } = await fetchFolder({ releases, tag, keys })
      assert.is(job.status, 'completed', job.error ?? '')
      assert.is(active, '1.2.3')
    }
  }
})

test('where a key is configured, nothing else is fetched', async () => {
  await using key = await makeSigningKey()
  await using other = await makeSigningKey()
  await using signed = await makeReleaseFolder({ line: 'current', key: key.path })
  await using plain = await makeReleaseFolder({ line: 'current' })
  await using earlier = await makeReleaseFolder({
    line: 'current',
    version: '1.1.0',
    key: key.path,
  })
  const keys = [key.publicKey]
  const rows: readonly (readonly [Omit<Fetch, 'tag'> & { readonly tag?: string }, RegExp])[] = [
    [{ releases: [plain], keys }, /signature is required and missing: .*HTTP 404/],
    [{ releases: [signed], keys: [other.publicKey] }, /by a key that is not configured/],
    [
      { releases: [signed], keys, site: { trouble: { name: 'release.toml', kind: 'wrong' } } },
      /it is not what was signed/,
    ],
    [
      { releases: [signed], keys, site: { trouble: { name: '.toml.sig', kind: 'truncated' } } },
      /is not one that ssh-keygen makes/,
    ],
    [
      { releases: [signed], keys, site: { trouble: { name: 'release.toml', kind: 'missing' } } },
      /has no signed manifest/,
    ],
    // Signed, and another release than asked for.
    [{ releases: [{ path: earlier.path, tag: 'v1.2.3' }], keys }, /manifest of v1\.1\.0/],
  ]
  for (const [given, reason] of rows) {
    const { job, active, names } = await fetchFolder({ tag: 'v1.2.3', ...given })
    assert.is(job.status, 'failed', reason.source)
    assert.match(job.error ?? '', reason)
    assert.is(active, '1.0.0')
    assert.is(names.length, 4, names.join(' '))
  }
})

test('an update program finds versions and digests as systemd-sysupdate does', async () => {
  await using one = await makeReleaseFolder({ line: 'current', version: '1.2.3' })
  await using two = await makeReleaseFolder({ line: 'current', version: '1.3.0' })
  await using hosting = await startHosting({ releases: [one, two] })
  const base = `${hosting.origin}/${REPOSITORY}/releases/latest/download/`
  const sums = await (await fetch(`${base}SHA256SUMS`)).text()
  const listed = sums
    .split('\n')
    .map((line) => /^([0-9a-f]{64}) {2}(flasher-netboot-pc-x86_64-v(.+)\.squashfs)$/.exec(line))
    .filter((row) => row !== null)
  assert.equal(
    listed.map(([, , , version]) => version),
    ['1.3.0'],
  )
  const [, digest, name] = listed[0] ?? []
  const bytes = Buffer.from(await (await fetch(`${base}${name}`)).arrayBuffer())
  assert.is(createHash('sha256').update(bytes).digest('hex'), digest)
})

test.run()
