/** The active manifest: TOML for people, and nothing lost that a catalog says of its images. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseCatalogDocument } from '#engine/catalog/rules/catalog-document.ts'
import {
  parseKeptCatalog,
  renderKeptCatalog,
  parseManifest,
} from '#engine/catalog/rules/manifest.ts'

const test = suite('kept catalog')

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
