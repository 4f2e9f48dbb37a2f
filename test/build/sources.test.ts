/** Package sources for other releases, from those of the host. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findArchive, NO_ARCHIVE, parseTargets, renderSources } from '#build/debian/sources.ts'

const test = suite('sources')
const ROWS = [
  'http://one.example/debian/|bookworm|main',
  'http://one.example/debian/|bookworm|contrib',
  'http://one.example/debian/|bookworm-updates|main',
  'http://two.example/security/|bookworm-security|main',
  '',
].join('\n')
const targets = parseTargets(ROWS)

test('the host says where from, we say what', () => {
  const sources = renderSources({ targets, host: 'bookworm', suite: 'trixie', backports: true })
  assert.equal(sources, {
    ok: true,
    text: `Types: deb
URIs: http://one.example/debian/
Suites: trixie trixie-updates trixie-backports
Components: main non-free-firmware
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://two.example/security/
Suites: trixie-security
Components: main non-free-firmware
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`,
  })
})

test('a host without a security archive gets none', () => {
  const rows = parseTargets('http://one.example/debian/|forky|main')
  const sources = renderSources({ targets: rows, host: 'forky', suite: 'trixie' })
  assert.is(sources.ok && sources.text.split('Types: deb').length, 2)
})

test('what rolls on has neither updates nor a security archive', () => {
  const sources = renderSources({ targets, host: 'bookworm', suite: 'sid' })
  assert.match(sources.ok ? sources.text : '', /^Suites: sid$/m)
  assert.not.match(sources.ok ? sources.text : '', /security/)
})

test('a host that is not Debian may know its archive', () => {
  const host = { targets, host: 'noble' }
  assert.is(findArchive(host)?.codename, 'bookworm')
  const sources = renderSources({ ...host, suite: 'trixie' })
  assert.match(sources.ok ? sources.text : '', /two\.example.*\nSuites: trixie-security/)
})

test('the release of the host goes before others', () => {
  const rows = 'http://old.example/|bullseye|main\nhttp://own.example/|bookworm|main\n'
  const archive = findArchive({ targets: parseTargets(rows), host: 'bookworm' })
  assert.is(archive?.uri, 'http://own.example/')
})

test('without an index the error says to fetch one, also where only updates are known', () => {
  const backports = parseTargets('http://one.example/|bookworm-backports|main\n')
  for (const known of [[], backports]) {
    assert.is(findArchive({ targets: known, host: 'bookworm' }), null)
    const sources = renderSources({ targets: known, host: 'bookworm', suite: 'trixie' })
    assert.equal(sources, { ok: false, why: NO_ARCHIVE })
  }
})
test.run()
