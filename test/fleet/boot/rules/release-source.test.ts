import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { completeSource, proposeSource, splitReleaseSource } from '#fleet/boot/rules/release.ts'

const test = suite('splitReleaseSource')

test('the address of a repository is a site and a repository', () => {
  const rows = [
    ['https://github.com/owner/name', '', 'https://github.com', 'owner/name'],
    [' https://host.example:8443/a/b.git ', '', 'https://host.example:8443', 'a/b'],
    ['https://github.com/owner/name/releases/tag/v1', '', 'https://github.com', 'owner/name'],
    ['https://host.example/below', '', 'https://host.example/below', ''],
    ['https://host.example/a/b', ' owner/name ', 'https://host.example/a/b', 'owner/name'],
    ['not an address', '', 'not an address', ''],
    ['', '', '', ''],
  ] as const
  for (const [site, repository, ...expected] of rows) {
    const found = splitReleaseSource(site, repository)
    assert.equal([found.site, found.repository], expected)
  }
})

test('what package.json names is proposed, and the usual site where it names none', () => {
  const rows = [
    [null, 'https://github.com', ''],
    ['owner/name', 'https://github.com', 'owner/name'],
    ['github:owner/name', 'https://github.com', 'owner/name'],
    ['git+https://git.example/owner/name.git', 'https://git.example', 'owner/name'],
    ['ssh://git@git.example/owner/name', 'https://github.com', ''],
    ['nonsense', 'https://github.com', ''],
  ] as const
  for (const [named, ...expected] of rows) {
    const found = proposeSource(named)
    assert.equal([found.site, found.repository], expected, String(named))
  }
})

test('what is set stays, and a site of its own is not given the repository of another', () => {
  const proposed = { site: 'https://github.com', repository: 'owner/name' }
  const none = { site: '', repository: '' }
  assert.equal(completeSource(none, proposed), proposed)
  const own = { site: 'https://git.example', repository: '' }
  assert.equal(completeSource(own, proposed), own)
  const other = { ...none, repository: 'a/b' }
  assert.equal(completeSource(other, proposed), { ...proposed, repository: 'a/b' })
})

test.run()
