/** Which images are handed on, and among which machines. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findNeighbourhood } from '#fleet/peers/rules/chain.ts'

const test = suite('a neighbourhood')
const CACHE = 'http://10.0.0.2:8081'
const IMAGE = { url: `${CACHE}/b/dG9rZW4/a.img.zst`, sha256: 'a'.repeat(64), indexSha256: 'b' }
const MACHINE = { ip: '10.1.2.3', labels: ['Rack A'] }

const find = (
  sites: readonly string[] = [],
  { image = IMAGE, machine = MACHINE, cacheUrl = CACHE, enabled = true }: Partial<Given> = {},
) => findNeighbourhood(image, machine, { peers: { enabled, sites }, cacheUrl })?.site ?? null

interface Given {
  readonly image: Parameters<typeof findNeighbourhood>[0]
  readonly machine: { readonly ip: string | null; readonly labels: readonly string[] }
  readonly cacheUrl: string | null
  readonly enabled: boolean
}

const SITES: readonly (readonly [string, readonly string[], string | null])[] = [
  ['the 256 addresses around it, where none are set', [], '10.1.2.0/24'],
  ['its network', ['10.9.0.0/16', '10.1.0.0/16'], '10.1.0.0/16'],
  ['the first of several that it is in', ['rack a', '10.1.0.0/16'], 'rack a'],
  ['its own address', ['10.1.2.3'], '10.1.2.3'],
  ['no site where it is in none of those', ['rack b', '10.9.0.0/16'], null],
]
for (const [what, sites, site] of SITES) {
  test(`a machine is in ${what}`, () => assert.is(find(sites), site))
}

test('a machine without an address, or with one of IPv6, has neighbours by a label or network alone', () => {
  for (const ip of [null, 'fd00::7']) {
    const machine = { ip, labels: ['rack a'] }
    assert.is(find([], { machine }), null)
    assert.is(find(['rack a'], { machine }), 'rack a')
  }
  assert.is(find(['fd00::/32'], { machine: { ip: 'fd00::7', labels: [] } }), 'fd00::/32')
})

const OTHERS: readonly (readonly [string, Partial<Given>])[] = [
  ['it is off', { enabled: false }],
  ['there is no cache service', { cacheUrl: null }],
  ['the cache service has TLS', { cacheUrl: 'https://10.0.0.2:8081' }],
  ['the image lies elsewhere', { image: { ...IMAGE, url: 'http://10.0.0.20:8081/a.img.zst' } }],
  ['a longer port begins like the right one', { image: { ...IMAGE, url: `${CACHE}1/a.img.zst` } }],
  ['its digest is not known', { image: { ...IMAGE, sha256: null } }],
  ['it has no index', { image: { ...IMAGE, indexSha256: null } }],
]
for (const [why, given] of OTHERS) {
  test(`nothing is handed on where ${why}`, () => assert.is(find([], given), null))
}

test.run()
