import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderCarried } from '#build/ipxe/script.ts'

const test = suite('the script that our iPXE carries')
const SCRIPT = readFileSync(new URL('../../../overlays/ipxe/flasher.ipxe', import.meta.url), 'utf8')

test('comments and empty lines stay here', () => {
  const carried = renderCarried(SCRIPT, null)
  assert.ok(carried.startsWith('#!ipxe\necho flasher: '))
  assert.not.match(carried, /\n#|\n\n/)
  assert.not.match(carried, /set server/)
})

test('whoever names the server, it is asked for /pxe-bootstrap.ipxe', () => {
  const chains = [...renderCarried(SCRIPT, null).matchAll(/^chain .*? (\S+)/gm)]
  assert.equal(
    chains.map(([, url]) => url),
    ['', 'http://${next-server}:8080', 'http://${next-server}', '${server}'].map(
      (base) => `${base}/pxe-bootstrap.ipxe?mac=\${mac:hexhyp}`,
    ),
  )
})

test('each label that is gone to is there', () => {
  const labels = new Set([...SCRIPT.matchAll(/^:(\w+)$/gm)].map(([, label]) => label))
  const targets = [...SCRIPT.matchAll(/goto (\w+)/g)].map(([, label]) => label)
  assert.ok(targets.length > 5)
  for (const target of targets) assert.ok(labels.has(target), target)
})

test('an address that is fixed comes first', () => {
  const carried = renderCarried(SCRIPT, 'http://10.0.0.1:8080/')
  assert.is(carried.split('\n')[1], 'set server http://10.0.0.1:8080')
})

test('an address that iPXE would read as something else is refused', () => {
  for (const server of ['flasher', 'http://a b', 'http://${x}', 'tftp://a', 'http://a\nb', '']) {
    assert.throws(() => renderCarried(SCRIPT, server), /--ipxe-server must be/)
  }
})

test.run()
