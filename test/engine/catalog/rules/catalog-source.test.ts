import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  decideDefaultCatalog,
  filePathOf,
  offerImages,
} from '#engine/catalog/rules/catalog-source.ts'
import { parseManifest, renderFlaw } from '#engine/catalog/rules/manifest.ts'

const test = suite('catalog source')
const REF = 'c'.repeat(64)

function offer(images: readonly string[], folder: string | null) {
  const manifest = parseManifest(
    `version = 1\n${images.map((one) => `[[images]]\n${one}`).join('\n')}`,
  )
  if (!manifest.ok) throw new Error(renderFlaw(manifest.refusal))
  return offerImages('here', manifest.value, folder)
}

test('where an image is read from, by how the catalog names it', () => {
  const rows = [
    ['https://H.example/A.img.gz', null, 'https://H.example/A.img.gz'],
    ['oras://H/a/b:Latest', null, 'oras://H/a/b:Latest'],
    ['file:///abs/X y.img', '/media', '/abs/X y.img'],
    ['file://sub/x%20y.img', '/media', '/media/sub/x%20y.img'],
    ['FILE://x.img', '', './x.img'],
  ] as const
  for (const [src, folder, location] of rows) {
    const { images, flaws } = offer([`name = "n"\nsrc = "${src}"`], folder)
    assert.equal([images[0]?.location, images[0]?.src, flaws], [location, src, []])
  }
})

test('what a cache says beside an address counts where that address is one of the web', () => {
  const cached = 'resolved_src = "http://cache:8081/files/x.img"'
  const rows = [
    ['file:///x.img', null, 'http://cache:8081/files/x.img'],
    ['file:///x.img', '/media', '/x.img'],
    ['https://h/x.img', null, 'http://cache:8081/files/x.img'],
    ['oras://h/a/b:v1', null, 'oras://h/a/b:v1'],
  ] as const
  for (const [src, folder, location] of rows) {
    const { images } = offer([`name = "n"\nsrc = "${src}"\n${cached}`], folder)
    assert.is(images[0]?.location, location, src)
  }
})

test('a bad entry is left out by line and name, and the others stay', () => {
  const entries = [
    'name = "file"\nsrc = "file:///etc/shadow.img"',
    'name = "good"\nsrc = "https://h/x.img"',
    'name = "ftp"\nsrc = "ftp://h/x.img"',
    'name = "path"\nsrc = "/x.img"',
    'src = "https://h/y.img"',
    'name = "registry"\nsrc = "oras://h/a"',
    'name = "stdin"\nsrc = "-"',
  ]
  const { images, flaws } = offer(entries, null)
  assert.equal(
    images.map(({ name }) => name),
    ['good'],
  )
  assert.equal(
    flaws.map(({ line }) => line),
    [2, 8, 11, 14, 16, 19],
  )
  const words = [
    /^file: only a catalog on this machine/,
    /^ftp: its source is no/,
    /^path: its source is no/,
  ]
  const more = [/^entry 5: has no name/, /^registry: malformed/, /^stdin: its source is no/]
  for (const [at, pattern] of [...words, ...more].entries()) {
    assert.match(flaws[at]?.reason ?? '', pattern)
  }
  assert.match(offer(['name = "n"\nsrc = "file://"'], '/').flaws[0]?.reason ?? '', /no path/)
})

test('the report of a bad entry is safe on any terminal', () => {
  const [flaw] = offer(['name = "a\\u001b[31mb"\nsrc = "x"'], null).flaws
  assert.match(flaw?.reason ?? '', /^a\\x1b\[31mb: its source/)
})

test('what cannot be flashed is listed with the reason', () => {
  const rows = [
    ['https://h/x.img.zst', '', 'img.zst', null],
    ['https://h/x.tar.gz', '', null, /^a tarball: extract it first$/],
    ['https://h/x.tgz', '', null, /^a tarball/],
    ['https://h/x.iso', 'format = "iso"', null, /^iso is not a format/],
    ['https://h/x', '', null, /^its format is unknown/],
    ['https://h/x', 'format = "IMG.GZ"', 'img.gz', null],
    ['oras://h/a/x:latest', '', null, null],
    ['oras://h/a/x:latest', 'format = "qcow2"', 'qcow2', null],
  ] as const
  for (const [src, more, format, obstacle] of rows) {
    const [image] = offer([`name = "n"\nsrc = "${src}"\n${more}`], null).images
    assert.is(image?.format, format, src)
    if (obstacle === null) assert.is(image?.obstacle, null)
    else assert.match(image?.obstacle ?? '', obstacle)
  }
})

test('identity: what the catalog says, else the canonical source', () => {
  const rewritten = `name = "n"\nsrc = "http://cache/b/eA/x.img"\nref = "${REF.toUpperCase()}"`
  assert.is(offer([rewritten], null).images[0]?.ref, REF)
  const plain = 'name = "n"\nsrc = "https://Ex.com:443/deb.img.gz"\narch = "arm64"'
  const [image] = offer([plain], null).images
  assert.is(image?.ref?.slice(0, 16), 'fc2ac2ef89502706')
  assert.is(image?.arch, 'arm64')
})

test('paths of file addresses', () => {
  assert.is(filePathOf('file:///a/b.img', '/m'), '/a/b.img')
  assert.is(filePathOf('file://b.img', '/m'), '/m/b.img')
  assert.is(filePathOf('/b.img', '/m'), null)
  assert.is(filePathOf('file://', '/m'), null)
})

test('the default catalog: named, by the kernel, of the release site, or none', () => {
  const all = { named: 'a', kernel: 'b', releaseBaseUrl: 'https://r/o/n/' }
  const none = { named: undefined, kernel: undefined, releaseBaseUrl: undefined }
  assert.is(decideDefaultCatalog(all), 'a')
  assert.is(decideDefaultCatalog({ ...all, named: '' }), 'b')
  assert.is(
    decideDefaultCatalog({ ...none, releaseBaseUrl: all.releaseBaseUrl }),
    'https://r/o/n/releases/latest/download/catalog.toml',
  )
  assert.is(decideDefaultCatalog(none), null)
})

test.run()
