/** What `pnpm build:release` makes, fetched from sites as they host it: signed or not, whole or not. */
import { createHash } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeReleaseFolder, makeSigningKey } from '#test/support/release-folder.ts'
import { makeBootFolder } from '#test/support/server/boot-folder.ts'
import { openReleaseFixture } from '#test/support/server/release-fixture.ts'
import { FORMS, startHosting } from '#test/support/http/hosting-site.ts'
import { REPOSITORY } from '#test/support/http/release-site.ts'

const test = suite('release folders, hosted')

type Site = Parameters<typeof startHosting>[0]
type Limits = NonNullable<Parameters<typeof openReleaseFixture>[3]>

interface Fetch extends Pick<Site, 'releases'> {
  readonly site?: Omit<Site, 'releases'>
  readonly tag: string
  readonly keys?: readonly string[]
  readonly limits?: Limits
}

/** One fetch into a folder that holds version 1.0.0. */
async function fetchOnce({ releases, site = {}, tag, keys = [], limits }: Fetch) {
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
        const { job, active } = await fetchOnce({ releases, site: { form, repository }, tag })
        assert.is(job.status, 'completed', job.error ?? '')
        assert.is(active, version)
      }
    })
  }
}

const SQUASHFS = 'flasher-netboot-pc-x86_64-v1.2.3.squashfs'
const QUICK: Limits = { textMs: 500, stallMs: 300 }

const TROUBLES: readonly (readonly [NonNullable<Site['trouble']>, RegExp])[] = [
  [{ name: SQUASHFS, kind: 'truncated' }, /squashfs holds [0-9a-f]{64}, but/],
  [{ name: SQUASHFS, kind: 'wrong' }, /squashfs holds [0-9a-f]{64}, but/],
  [{ name: SQUASHFS, kind: 'loop' }, /more than 10 redirects/],
  [{ name: SQUASHFS, kind: 'missing' }, /HTTP 404/],
  [{ name: SQUASHFS, kind: 'stall' }, /no byte for 0\.3 s/],
  [{ name: 'release.toml', kind: 'loop' }, /more than 10 redirects/],
  [{ name: 'release.toml', kind: 'stall' }, /no answer within 0\.5 s/],
  [{ name: '.sha256', kind: 'truncated' }, /does not list/],
]

for (const [trouble, reason] of TROUBLES) {
  test(`${trouble.name} is ${trouble.kind}: the reason is said, and nothing changes`, async () => {
    await using release = await makeReleaseFolder({ line: 'current' })
    const limits = trouble.kind === 'stall' ? QUICK : {}
    const { job, active, names } = await fetchOnce({
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
      const { job, active } = await fetchOnce({ releases, tag, keys })
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
    const { job, active, names } = await fetchOnce({ tag: 'v1.2.3', ...given })
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
