/** Refs as the deployed servers compute them. */
import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { canonicaliseSource } from '#kit/net/rules/image-location.ts'

const test = suite('ref')

/** Source, canonical source, first digits of the ref (observed on a deployed server). */
const VECTORS = [
  ['https://Ex.com:443/deb.img.gz', 'https://ex.com/deb.img.gz', 'fc2ac2ef89502706'],
  ['http://h:80/a', 'http://h/a', 'c43fa283946b8145'],
  ['http://h:8080/a', 'http://h:8080/a', '8e3bbf751d462200'],
  ['https://h:80/a', 'https://h:80/a', 'ae1594fd23ca5ee4'],
  ['HTTPS://u:p@Host/a%2Fb?x=1#f', 'https://host/a%2Fb?x=1#f', '2890d7e304474e0d'],
  ['http://h', 'http://h', '4f8d848825a112f9'],
  ['http://h/', 'http://h/', 'ad8295a7a69d6f00'],
  ['http://h?', 'http://h', '4f8d848825a112f9'],
  ['http://h/a?', 'http://h/a', 'c43fa283946b8145'],
  ['http://h/a#', 'http://h/a', 'c43fa283946b8145'],
  ['http://h:/a', 'http://h/a', 'c43fa283946b8145'],
  ['http://h/a/../b', 'http://h/a/../b', 'e5dc2e4d7b325673'],
  ['http://[2001:DB8::1]:8080/a', 'http://2001:db8::1:8080/a', '0dd3c7f55d85e32c'],
  ['https://h/ä', 'https://h/ä', 'b0c1c547699bac11'],
  [
    'HTTPS://Example.COM:443/a/Debian.img.gz?x=1',
    'https://example.com/a/Debian.img.gz?x=1',
    'f59e6ea9e8851df1',
  ],
  [
    'oras://GHCR.io/Safl/nosi/fedora:Latest',
    'oras://ghcr.io/safl/nosi/fedora:Latest',
    'c62b5863691d7813',
  ],
  [
    `oras://ghcr.io/a/b@sha256:${'a'.repeat(64)}`,
    `oras://ghcr.io/a/b@sha256:${'a'.repeat(64)}`,
    'c65ddfaae77e40ef',
  ],
  ['oras://ghcr.io:443/a/b:t', 'oras://ghcr.io:443/a/b:t', '8db53bfbf8e96446'],
  ['file://./a//b.img', 'file://a/b.img', 'c1ee0990019d1acc'],
  ['file:///abs/x.img', 'file://abs/x.img', '52100872f201c633'],
] as const

test('a bucket is in lower case, and its key is what it is called', () => {
  const rows = [
    ['S3://Lab/Deep/x y+%20?#1.img', 's3://lab/Deep/x y+%20?#1.img'],
    ['s3://lab.images-1//double//.img', 's3://lab.images-1//double//.img'],
    ['s3://lab', null],
    ['s3://lab/', null],
    ['s3://u:p@lab/x.img', null],
    ['s3://a/x.img', null],
    ['s3://lab/a/../b.img', null],
    ['s3://lab/./b.img', null],
    ['s3://lab/b\u0000.img', null],
    [`s3://lab/${'ä'.repeat(513)}`, null],
  ] as const
  for (const [source, canonical] of rows) {
    const found = canonicaliseSource(source)
    assert.is(found.ok ? found.value : null, canonical, source)
  }
})

for (const [source, canonical, digits] of VECTORS) {
  test(`${source} is ${canonical}`, () => {
    assert.equal(canonicaliseSource(source), { ok: true, value: canonical })
    const ref = refOf(source)
    assert.ok(ref.ok)
    assert.is(ref.value.slice(0, 16), digits)
    assert.match(ref.value, /^[0-9a-f]{64}$/)
  })
}

const REFUSED = [
  '',
  ' http://h/a',
  'ftp://h/a',
  'h/a',
  'https:///a',
  'http://u@/a',
  'http://h:65536/a',
  'http://h:8o/a',
  'http://[::1/a',
  'http://h/a\nb',
  'oras://ghcr.io/a/b',
  'oras://ghcr.io/a:t',
  'oras://ghcr.io/a/b:',
  `oras://ghcr.io/a/b@sha256:${'A'.repeat(64)}`,
  `oras://ghcr.io/a/b@sha256:${'a'.repeat(63)}`,
  'oras://ghcr.io/a/b:t@sha256:x',
  'file://',
  'file:///',
  'file://a/../b',
  'file://a\0b',
  'FILE://..',
]
for (const source of REFUSED) {
  test(`refuses ${JSON.stringify(source)}`, () => {
    assert.is(refOf(source).ok, false)
  })
}

test('the canonical source is its own canonical source, brackets of IPv6 aside', () => {
  const source = fc.oneof(
    fc.webUrl({ withQueryParameters: true, withFragments: true }),
    fc.string().map((text) => `http://h/${text}`),
    fc.string().map((text) => `file://${text}`),
  )
  fc.assert(
    fc.property(source, (text) => {
      const canonical = canonicaliseSource(text)
      if (canonical.ok) assert.equal(canonicaliseSource(canonical.value), canonical)
    }),
    { numRuns: 2000 },
  )
})

test('any text is either refused or hashed as it is spelt', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
      const canonical = canonicaliseSource(text)
      const ref = refOf(text)
      assert.is(ref.ok, canonical.ok)
      if (!ref.ok || !canonical.ok) return
      assert.is(ref.value, createHash('sha256').update(canonical.value, 'utf8').digest('hex'))
    }),
    { numRuns: 2000 },
  )
})

test.run()
