import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decodeList, parseSha256For } from '#kit/foundation/checksum.ts'
import { accept, refuse } from '#kit/foundation/result.ts'

const test = suite('parseSha256For')
const A = 'a'.repeat(64)
const B = 'b'.repeat(64)

test('the forms that sha256sum writes', () => {
  assert.equal(parseSha256For(`${B}  other.img\n${A}  disk.img\n`, 'disk.img'), accept(A))
  assert.equal(parseSha256For(`${A} *disk.img\r\n`, 'disk.img'), accept(A))
  assert.equal(parseSha256For(`${A.toUpperCase()}  /build/out/disk.img`, 'disk.img'), accept(A))
  assert.equal(parseSha256For(`SHA256 (disk.img) = ${A}\n`, 'disk.img'), accept(A))
  assert.equal(parseSha256For(`# made today\n${A}  ./disk.img\n`, 'disk.img'), accept(A))
})
test('the forms that other systems write', () => {
  for (const line of [`${A} disk.img`, `${A}\tdisk.img`, `\ufeff${A}  disk.img\r\n`]) {
    assert.equal(parseSha256For(line, 'disk.img'), accept(A), line)
  }
  assert.equal(parseSha256For(`\ufeff${A}`, 'disk.img'), accept(A))
  const text = `${A}  disk.img\r\n${B}  other.img\r\n`
  const little = Buffer.from(`\ufeff${text}`, 'utf16le')
  const big = Buffer.from(little).swap16()
  for (const bytes of [Buffer.from(text), Buffer.from(`\ufeff${text}`), little, big]) {
    assert.equal(parseSha256For(decodeList(bytes), 'disk.img'), accept(A))
  }
})
test('a single bare digest is for the file that it lies beside', () => {
  assert.equal(parseSha256For(`${A}\n`, 'disk.img'), accept(A))
})
test('what proves nothing is refused', () => {
  assert.equal(parseSha256For(`${A}  other.img\n`, 'disk.img'), refuse('not-listed'))
  assert.equal(parseSha256For(`${A}  disk.img\n${B}  disk.img\n`, 'disk.img'), refuse('not-listed'))
  assert.equal(parseSha256For(`${A}\n${B}\n`, 'disk.img'), refuse('not-a-checksum-list'))
  assert.equal(parseSha256For('', 'disk.img'), refuse('not-a-checksum-list'))
  assert.equal(parseSha256For('<html>404</html>', 'disk.img'), refuse('not-a-checksum-list'))
})
test('any text gives a digest or a no', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const found = parseSha256For(text, 'disk.img')
      assert.ok(!found.ok || /^[0-9a-f]{64}$/.test(found.value))
    }),
  )
})
test.run()
