import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isServerVersion, parseServerAddress } from '#kit/net/rules/host-header.ts'

const test = suite('parseServerAddress')

const GOOD: readonly (readonly [string, readonly string[]])[] = [
  ['flasher-server', ['http://flasher-server', 'http://flasher-server:8080']],
  [' Lab.Example/ ', ['http://lab.example', 'http://lab.example:8080']],
  ['10.0.0.5', ['http://10.0.0.5', 'http://10.0.0.5:8080']],
  ['[fd00::1]', ['http://[fd00::1]', 'http://[fd00::1]:8080']],
  ['lab/flasher/', ['http://lab/flasher', 'http://lab:8080/flasher']],
  ['10.0.0.5:8080', ['http://10.0.0.5:8080']],
  ['[fd00::1]:81', ['http://[fd00::1]:81']],
  ['http://lab', ['http://lab']],
  ['HTTPS://lab:8443/flasher//', ['https://lab:8443/flasher']],
]
for (const [text, bases] of GOOD) {
  test(`takes ${JSON.stringify(text)}`, () => {
    assert.equal(parseServerAddress(text), { ok: true, value: bases })
  })
}

for (const text of ['', '/', 'http://', 'ftp://lab', 'lab name', 'lab:99999', 'user@lab', 'a?b']) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.is(parseServerAddress(text).ok, false)
  })
}

test('tells our server from whatever else answers', () => {
  assert.is(isServerVersion({ version: '1.2.3' }), true)
  for (const other of [null, 'ok', [], {}, { version: 1 }]) assert.is(isServerVersion(other), false)
})

test.run()
