import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseCatalogDocument } from '#engine/catalog/rules/catalog-document.ts'
import { isFlashable, renderImageEntry, refOf } from '#engine/catalog/rules/catalog.ts'

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

test.run()
