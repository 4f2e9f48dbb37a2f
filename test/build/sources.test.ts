/** Package sources for other releases, from those of the host. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseTargets, renderSources } from '../../build/debian/sources.ts'

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

test('without an index of its own release the host is told to fetch one', () => {
  const sources = renderSources({ targets: [], host: 'bookworm', suite: 'trixie' })
  assert.equal(sources, {
    ok: false,
    why: 'apt knows no package index of bookworm: run apt-get update',
  })
})
test.run()
