import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  parseCatalogDocument,
  parseKeptCatalog,
  parseManifest,
  renderKeptCatalog,
} from '#engine/catalog/rules/manifest.ts'
import { isFlashable, refOf, renderImageEntry } from '#engine/catalog/rules/catalog.ts'
import { canonicaliseSource } from '#kit/net/rules/image-location.ts'

const test = suite('catalog')
const BASE = 'http://cache:8081'
const parse = (entries: unknown) => {
  const parsed = parseCatalogDocument(JSON.stringify({ entries }), BASE)
  if (!parsed.ok) throw new Error(parsed.refusal)
  return parsed.value
}

test('an entry becomes the six fields of the specification, and where machines get it', () => {
  const sha256 = '6257B0BD50CD2E88F425646E374096341121AB92B58E69CDC68A7F0F79A60513'
  const src = 'https://ex.com/deb.img.gz'
  const [entry] = parse([{ name: 'deb (amd64)', src, sha256, size_bytes: 123, extra: [1] }]).entries
  assert.ok(entry)
  if (entry === undefined) return
  const ref = refOf(src)
  assert.equal(renderImageEntry(entry), {
    name: 'deb (amd64)',
    format: 'img.gz',
    size_bytes: 123,
    url: src,
    ref: ref.ok && ref.value,
    sha_short: '6257b0bd50cd',
    arch: 'x86_64',
  })
  assert.is(entry.url, `${BASE}/b/${Buffer.from(src).toString('base64url')}/deb.img.gz`)
})

test('what is not known is empty, zero or null', () => {
  const [entry] = parse([{ name: 'x', src: 'oras://h/a/b:latest', size_bytes: '5' }]).entries
  assert.ok(entry)
  if (entry === undefined) return
  const { ref: _, ...row } = renderImageEntry(entry)
  const url = 'oras://h/a/b:latest'
  assert.equal(row, { name: 'x', format: '', size_bytes: 0, url, sha_short: null, arch: null })
})

test('the blob is asked for by the resolved source, the ref is of the source', () => {
  const src = 'file:///x.img'
  const resolved = 'http://cache:8081/files/x.img'
  const [entry] = parse([{ name: 'x.img', src, resolved_src: resolved }]).entries
  assert.ok(entry)
  if (entry === undefined) return
  assert.is(entry.ref, refOf(src).ok && String(Object(refOf(src)).value))
  assert.match(entry.url, new RegExp(`/b/${Buffer.from(resolved).toString('base64url')}/x.img$`))
  assert.is(renderImageEntry(entry).url, resolved)
})

test('one bad entry is skipped and named', () => {
  const good = { name: 'good', src: 'https://h/good.img' }
  const { entries, skipped } = parse([
    null,
    7,
    [],
    {},
    { name: '', src: 'https://h/x' },
    { name: 'no source' },
    { name: 'scheme', src: 'ftp://h/x' },
    { name: 'digest', src: 'https://h/y', sha256: 'abc' },
    good,
    { ...good, src: 'https://h/other.img' },
    { name: 'twin', src: 'HTTPS://h:443/good.img' },
    { name: 'tarball', src: 'https://h/boot.tar.gz' },
  ])
  assert.equal(
    entries.map(({ name, format }) => [name, format]),
    [
      ['good', 'img'],
      ['tarball', 'tar.gz'],
    ],
  )
  assert.equal(entries.map(isFlashable), [true, false])
  assert.equal(
    skipped.map(({ name, reason }) => `${name}: ${reason}`),
    [
      'entry 1: is not a table of fields',
      'entry 2: is not a table of fields',
      'entry 3: is not a table of fields',
      'entry 4: has no name of 1 to 512 characters',
      'entry 5: has no name of 1 to 512 characters',
      'no source: has no source (src)',
      'scheme: its source cannot be used: ftp://h/x',
      'digest: sha256 is not 64 hexadecimal digits',
      'good: another entry has this name',
      'twin: has the same source as good',
    ],
  )
})

test('the architecture and the format are derived from the names where no field gives them', () => {
  const rows = [
    ['nosi debian (x86_64, 2026.W30)', 'oras://h/a/b:x', 'x86_64', ''],
    ['n', 'https://h/debian-13-genericcloud-amd64.qcow2?x=.img.gz', 'x86_64', 'qcow2'],
    ['raspios-arm64.img.xz', 'https://h/x', 'arm64', 'img.xz'],
    ['chamd64x', 'https://h/x.IMG.ZST', null, 'img.zst'],
    ['100% ?.img.gz', 'https://h/x', null, 'img.gz'],
  ] as const
  for (const [name, src, arch, format] of rows) {
    const [entry] = parse([{ name, src }]).entries
    assert.equal([entry?.arch, entry?.format], [arch, format], name)
  }
})

test('what is no catalog is refused in words, whatever it is', () => {
  for (const text of ['', '<html>', '[]', '{}', '"x"', 'null', '{"entries":{}}']) {
    const parsed = parseCatalogDocument(text, BASE)
    assert.ok(!parsed.ok && parsed.refusal.startsWith('the answer is not a catalog'), text)
  }
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      parseCatalogDocument(JSON.stringify({ entries: [value] }), BASE)
      parseCatalogDocument(JSON.stringify(value), BASE)
    }),
  )
})

test('of absurdly many entries the first are taken, and the rest is said', () => {
  const many = Array.from({ length: 10_003 }, (_, at) => ({
    name: `n${at}`,
    src: `http://h/${at}`,
  }))
  const { entries, skipped } = parse(many)
  assert.is(entries.length, 10_000)
  assert.match(skipped[0]?.reason ?? '', /lists 10003 images; only the first 10000/)
})

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

const ENTRIES = [
  {
    name: 'a',
    src: 'https://h/a.img.zst',
    resolved_src: null,
    sha256: 'c'.repeat(64),
    size_bytes: 5,
  },
  {
    name: 'line\nend',
    src: 'oras://h/a/b:latest',
    arch: 'x86_64',
    hidden: false,
    more: { deep: [] },
  },
  { name: 'bad', src: 'nowhere' },
  'no entry at all',
]
const kept = (entries: unknown) => ({
  base: 'http://cache:8081',
  fetchedAt: '2026-11-21T10:00:00Z',
  etag: '"one"',
  text: JSON.stringify({ url: 'u', entries }),
})
const list = (text: string) => {
  const parsed = parseCatalogDocument(text, 'http://cache:8081')
  if (!parsed.ok) throw new Error(parsed.refusal)
  return parsed.value
}

test('comes back with the same images, and the same ones left out', () => {
  const text = renderKeptCatalog(kept(ENTRIES))
  assert.match(text ?? '', /^# The images .*\n# .*\n\nversion = 1\ncache = "http:\/\/cache:8081"\n/)
  const back = parseKeptCatalog(text ?? '')
  const { text: _, ...head } = kept(ENTRIES)
  assert.equal({ ...back, text: '' }, { ...head, text: '' })
  assert.equal(list(back?.text ?? '').entries, list(kept(ENTRIES).text).entries)
  assert.equal(
    list(back?.text ?? '').skipped.map(({ name }) => name),
    ['bad', 'entry 4'],
  )
})

test('cut short or edited it is none', () => {
  const text = renderKeptCatalog(kept(ENTRIES)) ?? ''
  assert.is(parseKeptCatalog(text.replace('name = "a"', 'name = "b"')), null)
  for (let length = 0; length < text.trimEnd().length; length++) {
    assert.is(parseKeptCatalog(text.slice(0, length)), null, text.slice(length - 20, length))
  }
})

test('is a manifest like any other', () => {
  const manifest = parseManifest(renderKeptCatalog(kept(ENTRIES.slice(0, 2))) ?? '')
  assert.ok(manifest.ok && manifest.value.flaws.length === 0 && manifest.value.images.length === 2)
})

test('takes whatever a service answers, and gives back null for what is none', () => {
  for (const text of ['', '{}', '[]', 'null', '{"entries":3}', 'x']) {
    assert.is(renderKeptCatalog({ ...kept([]), text }), null)
  }
  // It is read by nobody (json-reader.ts), so it is not kept either.
  const poisoned = '{"entries":[{"__proto__":{}}]}'
  assert.is(renderKeptCatalog({ ...kept([]), text: poisoned }), null)
  for (const text of ['', 'x', 'cache = 3', 'version = 1', '{"base":"http://h"}']) {
    assert.is(parseKeptCatalog(text), null)
  }
  const anyEntries = fc.array(fc.oneof(fc.object(), fc.anything()), { maxLength: 4 })
  fc.assert(
    fc.property(anyEntries, (entries) => {
      const text = JSON.stringify({ entries })
      const rendered = renderKeptCatalog({ ...kept([]), text })
      if (!parseCatalogDocument(text, 'http://cache:8081').ok) {
        assert.match(text, /__proto__|constructor/)
        return assert.is(rendered, null)
      }
      const back = parseKeptCatalog(rendered ?? '')
      assert.ok(back)
      assert.equal(list(back?.text ?? '').entries, list(text).entries)
    }),
  )
})

test.run()
