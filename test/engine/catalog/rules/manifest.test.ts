import { createHash } from 'node:crypto'
import { spawnSync } from 'node:child_process'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type CatalogEntry, refOf } from '#engine/catalog/rules/catalog.ts'
import { parseManifest, renderFlaw, renderManifest } from '#engine/catalog/rules/manifest.ts'
import { parseToml } from '#kit/config/rules/toml.ts'

const test = suite('catalog manifests')
const REF = 'a'.repeat(64)
/** The reference of `https://H/x.img` and of all its spellings. */
const refOfPlain = createHash('sha256').update('https://h/x.img').digest('hex')

const isName = (name: string) => name.trim() !== ''

const entryOf = (name: string, more: Partial<CatalogEntry> = {}): CatalogEntry => ({
  ref: REF,
  name,
  src: 'https://h/x.img',
  resolvedSrc: null,
  url: 'http://cache/b/eA/x.img',
  format: 'img',
  arch: null,
  sha256: null,
  sizeBytes: null,
  description: null,
  ...more,
})

test('any name and description survive both ways', () => {
  const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 100 })
  fc.assert(
    fc.property(fc.uniqueArray(text.filter(isName), { maxLength: 5 }), text, (names, about) => {
      const description = about.trim() === '' ? null : about
      const rendered = renderManifest(names.map((name) => entryOf(name, { description })))
      const parsed = parseManifest(rendered)
      assert.ok(parsed.ok)
      if (!parsed.ok) return
      assert.equal(parsed.value.flaws, [])
      const back = parsed.value.images.map((image) => [image.name, image.description])
      assert.equal(
        back,
        names.map((name) => [name, description]),
      )
    }),
    { numRuns: 300 },
  )
})

test('what we write is what another reader of TOML reads', () => {
  const names = ['plain', 'quo"te\\', 'line\nend\r\t\u0000\u001b[31m\u007f', 'ünï😀\u2028\u0085']
  const text = renderManifest(names.map((name) => entryOf(name)))
  const script =
    'import sys,json\ntry:\n import tomllib\nexcept ImportError:\n print("none");sys.exit()\nprint(json.dumps([i["name"] for i in tomllib.loads(sys.stdin.read())["images"]]))'
  const { stdout, status } = spawnSync('python3', ['-c', script], { input: text, encoding: 'utf8' })
  // Only where such a reader is at hand.
  if (status === 0 && stdout.trim() !== 'none') assert.equal(JSON.parse(stdout), names)
})

test('has the keys of the schema, and leaves out what is not known', () => {
  const whole = entryOf('n', { sha256: 'b'.repeat(64), sizeBytes: 5, arch: 'x86_64' })
  const plain = { format: '', url: 'https://H/x.img', ref: refOfPlain }
  const text = renderManifest([whole, entryOf('m', plain)])
  assert.is(
    text.trim(),
    [
      'version = 1',
      '',
      '[[images]]',
      'name = "n"',
      'src = "http://cache/b/eA/x.img"',
      `bty_image_ref = "${REF}"`,
      `sha256 = "${'b'.repeat(64)}"`,
      'format = "img"',
      'size_bytes = 5',
      'arch = "x86_64"',
      '',
      '[[images]]',
      'name = "m"',
      'src = "https://H/x.img"',
      `ref = "${refOfPlain}"`,
      `bty_image_ref = "${refOfPlain}"`,
    ].join('\n'),
  )
  assert.equal(parseManifest(renderManifest([])), { ok: true, value: { images: [], flaws: [] } })
})

test('deployed clients refuse no row: a ref that is there is the one that its src makes', () => {
  const anyEntry = fc.record({ url: fc.webUrl(), isOwn: fc.boolean() })
  fc.assert(
    fc.property(anyEntry, ({ url, isOwn }) => {
      const made = refOf(url)
      const ref = isOwn && made.ok ? made.value : REF
      const [image] = Object(parseToml(renderManifest([entryOf('n', { url, ref })]))).value.images
      assert.ok(image.ref === undefined || (made.ok && image.ref === made.value))
      assert.is(image.bty_image_ref, ref)
    }),
  )
})

test('of the two names of the identity the one that needs no src counts', () => {
  assert.is(identityOf(`ref = "${REF.toUpperCase()}"`), REF)
  assert.is(identityOf(`ref = "${'b'.repeat(64)}"\nbty_image_ref = "${REF}"`), REF)
  assert.is(identityOf(''), null)
})

function identityOf(more: string) {
  const parsed = parseManifest(`version = 1\n[[images]]\nname = "n"\nsrc = "https://h/x"\n${more}`)
  return parsed.ok ? parsed.value.images[0]?.ref : undefined
}

test('says on which line it cannot be read', () => {
  const rows = [
    ['version = 1\n[[images]]\nname = "a\nb"', /^line 3: .*\(column 10\)$/],
    ['version = 1\nversion = 1', /^line 2: /],
    ['images = []', /^a catalog must have version = 1; none is given$/],
    ['# later\nversion = 2', /^line 2: a catalog must have version = 1; this one is 2$/],
    ['version = "1"', /this one is "1"/],
    ['version = 1\nimages = 3', /^line 2: "images" must be tables/],
    ['<html>', /^line 1: /],
    ['', /none is given/],
  ] as const
  for (const [text, words] of rows) {
    const parsed = parseManifest(text)
    assert.ok(!parsed.ok, text)
    if (!parsed.ok) assert.match(renderFlaw(parsed.refusal), words)
  }
})

test('one bad image spoils none of the others, and is reported with its line', () => {
  const text = [
    'version = 1',
    '[[images]]',
    'name = "good"',
    'src = "oras://h/a/b:latest"',
    '[[images]]',
    'src = "https://h/x"',
    '[[images]] # twice',
    'name = "good"',
    'src = "https://h/y"',
    '[[images]]',
    'name = "bad digest"',
    'src = "https://h/z"',
    'sha256 = "123"',
    '[[images]]',
    'name = "dropped"',
    'src = "file:///x.img"',
    'size_bytes = -1',
    'unknown = { a = 1 }',
  ].join('\n')
  const parsed = parseManifest(text)
  assert.ok(parsed.ok)
  if (!parsed.ok) return
  assert.equal(
    parsed.value.images.map(({ name, src, size_bytes: size }) => [name, src, size]),
    [
      ['good', 'oras://h/a/b:latest', null],
      ['dropped', 'file:///x.img', null],
    ],
  )
  assert.equal(parsed.value.flaws.map(renderFlaw), [
    'line 5: entry 2: has no name of 1 to 512 characters',
    'line 7: good is listed twice',
    'line 10: bad digest: sha256 is not 64 hexadecimal digits',
  ])
})

test('reads any text without throwing', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      parseManifest(`version = 1\n${text}`)
    }),
  )
})

test.run()
