/** The sources of an image for a machine: who is near it, in which order, and how little moves when a cache comes or goes. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listSources } from '#engine/catalog/rules/near-caches.ts'

const test = suite('caches near a machine')
const CACHE = 'http://10.0.0.2:8081'
const imageOf = (digest: string, url = `${CACHE}/b/dG9rZW4/debian.img.zst`) => ({
  url,
  sha256: digest.padEnd(64, '0'),
  ref: 'a'.repeat(64),
})
const IMAGE = imageOf('1')

function list(
  caches: readonly string[],
  { ip = '10.1.0.7', labels = [] }: { ip?: string | null; labels?: readonly string[] } = {},
  image = IMAGE,
) {
  return listSources(image, { caches, cacheUrl: `${CACHE}/` }, { ip, labels })
}

const A = 'http://10.1.0.5:8081'
const PATH = `/b/dG9rZW4/debian.img.zst?sha256=${IMAGE.sha256}`

const ROWS: readonly (readonly [string, string, Parameters<typeof list>[1], boolean])[] = [
  ['all machines', A, {}, true],
  ['its network', `${A} 10.1.0.0/24`, {}, true],
  ['another network', `${A} 10.2.0.0/24`, {}, false],
  ['its address', `${A} 10.1.0.7`, {}, true],
  ['an IPv6 network', `${A} fd00:1::/32`, { ip: 'fd00:1::7' }, true],
  ['no address is known', `${A} 10.1.0.0/24`, { ip: null }, false],
  ['its label, in any case', `${A} Rack A`, { labels: ['rack a'] }, true],
  ['another label', `${A} rack b`, { labels: ['rack a'] }, false],
  ['one of several', `${A} rack b; 10.1.0.0/16`, { labels: [] }, true],
]
for (const [name, cache, machine, isNear] of ROWS) {
  test(`a cache for ${name} is ${isNear ? '' : 'not '}named`, () => {
    assert.equal(list([cache], machine), isNear ? [`${A}${PATH}`] : [])
  })
}

test("those of the machine's site come before those for all", () => {
  const caches = ['http://all:1', 'http://near:1 10.1.0.0/24', 'http://far:1 10.9.0.0/24']
  assert.equal(list(caches), [`http://near:1${PATH}`, `http://all:1${PATH}`])
})

test('none where the cache service does not have the image, and at most six', () => {
  assert.equal(list([A], {}, imageOf('1', 'https://example.org/debian.img.zst')), [])
  assert.equal(listSources(IMAGE, { caches: [A], cacheUrl: null }, { ip: null, labels: [] }), [])
  const many = Array.from({ length: 20 }, (_, at) => `http://cache${at}:8081`)
  assert.is(list(many).length, 6)
})

test('an address names the version; none where its digest is not known, as nothing tells versions apart', () => {
  const unknown = { ...IMAGE, sha256: null }
  const at = { caches: [A], cacheUrl: CACHE }
  const machine = { ip: null, labels: [] }
  assert.equal(listSources(unknown, at, machine), [])
  const file = { ...IMAGE, url: `${CACHE}/files/a.img` }
  assert.equal(listSources(file, at, machine), [`${A}/files/a.img?sha256=${IMAGE.sha256}`])
})

test('images are spread over the caches, and only those of a cache that goes move', () => {
  const caches = ['a', 'b', 'c', 'd'].map((name) => `http://${name}:8081`)
  const digests = Array.from({ length: 400 }, (_, at) => at.toString(16).padStart(4, '0'))
  const firstOf = (from: readonly string[]) =>
    digests.map((digest) => list(from, {}, imageOf(digest))[0]?.replace(/\/b\/.*/, ''))
  const before = firstOf(caches)
  for (const cache of caches) {
    const share = before.filter((first) => first === cache).length
    assert.ok(share > 60 && share < 140, `${cache} has ${share} of 400`)
  }
  const after = firstOf(caches.slice(0, 3))
  for (const [at, first] of before.entries()) {
    if (first !== caches[3]) assert.is(after[at], first)
  }
  assert.equal(firstOf(caches.toReversed()), before)
})

test.run()
