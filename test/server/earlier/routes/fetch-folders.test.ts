/** The earlier line fetches what `pnpm build:release` makes, and only what is signed where a key is configured. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LIVE_SUMS, LIVE_TRIO } from '#appliance/assets.ts'
import { makeReleaseFolder, makeSigningKey } from '#test/support/release-folder.ts'
import { FORMS, startHosting } from '#test/support/http/hosting-site.ts'
import { REPOSITORY } from '#test/support/http/release-site.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'

const test = suite('the earlier line: release folders')
const NAMES = [...Object.values(LIVE_TRIO), LIVE_SUMS]

/** The page after a fetch, and what is in the boot directory then. */
async function fetchOnce(site: Parameters<typeof startHosting>[0], tag: string, keys: string) {
  await using hosting = await startHosting(site)
  await using server = await createEarlierServer({
    env: {
      FLASHER_RELEASES_BASE_URL: hosting.origin,
      FLASHER_BOOT_RELEASE_REPO: REPOSITORY,
      ...(keys === '' ? {} : { FLASHER_RELEASES_PUBLIC_KEYS: keys }),
    },
  })
  const ask = await server.operator()
  const body = new URLSearchParams({ tag })
  const answer = await ask('/ui/boot/fetch-release', { method: 'POST', body })
  const page = await (await ask(answer.headers.get('location') ?? '')).text()
  const names = (await readdir(server.boot)).filter((name) => !name.startsWith('.'))
  const files = await Promise.all(names.map((name) => readFile(join(server.boot, name))))
  return { page, files: new Map(names.map((name, at) => [name, files[at]] as const)) }
}

for (const form of FORMS) {
  for (const tag of ['v1.2.3', 'latest']) {
    test(`signed, ${form}, ${tag}`, async () => {
      await using key = await makeSigningKey()
      await using release = await makeReleaseFolder({ line: 'earlier', key: key.path })
      for (const keys of ['', key.publicKey]) {
        const { page, files } = await fetchOnce({ releases: [release], form }, tag, keys)
        assert.match(page, 'was installed')
        assert.equal([...files.keys()].toSorted(), NAMES.toSorted())
        for (const name of NAMES) assert.equal(files.get(name), await release.read(name), name)
      }
    })
  }
}

test('where a key is configured, nothing else is fetched', async () => {
  await using key = await makeSigningKey()
  await using other = await makeSigningKey()
  await using signed = await makeReleaseFolder({ line: 'earlier', key: key.path })
  await using plain = await makeReleaseFolder({ line: 'earlier' })
  await using current = await makeReleaseFolder({ line: 'current', key: key.path })
  const { publicKey } = key
  const trouble = (name: string, kind: 'wrong' | 'missing') => ({
    releases: [signed],
    trouble: { name, kind },
  })
  const rows = [
    [{ releases: [plain] }, publicKey, /signature is required and missing/],
    [{ releases: [signed] }, other.publicKey, /by a key that is not configured/],
    [trouble('release.toml', 'wrong'), publicKey, /it is not what was signed/],
    [trouble('release.toml', 'missing'), publicKey, /has no signed manifest/],
    [trouble(LIVE_TRIO.initrd, 'wrong'), publicKey, /initrd holds [0-9a-f]{64}, but/],
    [{ releases: [{ path: signed.path, tag: 'v2' }] }, publicKey, /manifest of v1\.2\.3/, 'v2'],
    [{ releases: [current] }, publicKey, /does not list flasher-live-x86_64\.vmlinuz/],
  ] as const
  for (const [site, keys, reason, tag = 'v1.2.3'] of rows) {
    const { page, files } = await fetchOnce(site, tag, keys)
    assert.match(page, reason)
    assert.is(files.size, 0)
  }
})

test.run()
