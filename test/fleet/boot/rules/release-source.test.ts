import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { splitReleaseSource } from '../../../../runtime/fleet/boot/rules/release-source.ts'

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

test.run()
