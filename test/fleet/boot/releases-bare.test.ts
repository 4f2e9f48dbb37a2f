/** Releases without `release.toml`: the trio and its list of checksums are enough. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { createBootFiles } from '#fleet/boot/boot-files.ts'
import { createReleases } from '#fleet/boot/releases.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { makeBootFolder, partName } from '#test/support/server/boot-folder.ts'
import { REPOSITORY, startReleaseSite, type SiteOptions } from '#test/support/http/release-site.ts'
import { createStateFolder } from '#test/support/server/state.ts'

const test = suite('releases without a manifest')
const NO_MANIFEST = { 'release.toml': null }
const now = () => new Date()
const API = `/repos/${REPOSITORY}/releases/latest`

/** One fetch of `tag` into a folder that holds version 1.0.0. */
async function fetchOnce(options: SiteOptions, tag: string) {
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
    const { job, site, active, names } = await fetchOnce(options, tag)
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
    /squashfs holds [0-9a-f]{64}, but/,
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
    const { job, active, names } = await fetchOnce(options, tag)
    assert.is(job.status, 'failed')
    assert.match(job.error ?? '', message)
    assert.is(active?.version, '1.0.0')
    assert.is(names.length, 4, names.join(' '))
  })
}

test('a manifest that is there and wrong is the reason, whatever lies beside it', async () => {
  const { job } = await fetchOnce({ changed: { 'release.toml': '<html>' } }, 'v1.2.3')
  assert.match(job.error ?? '', /release\.toml cannot be used: line 1, column/)
})

test.run()
