/** Who reads from whom: order of arrival, deaths, windows that have gone, and no circle whatever machines say. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createPeerChains } from '#fleet/peers/peer-chains.ts'
import { ASK_SECONDS, findNeighbourhood, MAX_HOPS, SILENT_MS } from '#fleet/peers/rules/chain.ts'
import { macOf } from '#test/support/server/machine-fixture.ts'

const test = suite('a chain of machines')
const MIB = 1 << 20

function openChain() {
  const clock = { ms: 0 }
  const chains = createPeerChains(() => clock.ms)
  const visits = new Map<number, number>()
  const hear = (
    index: number,
    { readBytes = 0, windowBytes = 64 * MIB, serves = true, chain = 'a', host = index } = {},
  ) => {
    const { before, hops } = chains.hear(chain, {
      mac: macOf(`52:54:00:00:01:${index.toString(16).padStart(2, '0')}`),
      visit: `${index}/${visits.get(index) ?? 0}`,
      ip: `10.0.0.${host}`,
      readBytes,
      windowBytes,
      serves,
    })
    return { from: before.map(({ ip }) => Number(ip.split('.')[3])), hops }
  }
  const again = (index: number) => visits.set(index, (visits.get(index) ?? 0) + 1)
  return { clock, hear, again }
}

test('each stands behind the one that came before it, and learns of three', () => {
  const { hear } = openChain()
  assert.equal(hear(1), { from: [], hops: 0 })
  assert.equal(hear(2), { from: [1], hops: 1 })
  assert.equal(hear(3), { from: [2, 1], hops: 2 })
  assert.equal(hear(4), { from: [3, 2, 1], hops: 3 })
  assert.equal(hear(5), { from: [4, 3, 2], hops: 4 })
  assert.equal(hear(2), { from: [1], hops: 1 })
})

test('another image or another site is another chain', () => {
  const { hear } = openChain()
  hear(1)
  assert.equal(hear(2, { chain: 'b' }).from, [])
})

test('whoever stood behind a machine that is silent moves up', () => {
  const { clock, hear } = openChain()
  for (const index of [1, 2, 3]) hear(index)
  clock.ms += SILENT_MS
  hear(1)
  clock.ms += 1
  assert.equal(hear(3), { from: [1], hops: 1 })
  clock.ms += SILENT_MS + 1
  assert.equal(hear(3), { from: [], hops: 0 })
  assert.ok(SILENT_MS > 3 * ASK_SECONDS * 1000)
})

test('who comes late stands behind a machine that still keeps the beginning, else at the cache', () => {
  const { hear } = openChain()
  hear(1)
  hear(1, { readBytes: 64 * MIB })
  assert.equal(hear(2).from, [1])
  hear(1, { readBytes: 500 * MIB })
  hear(2, { readBytes: 480 * MIB })
  assert.equal(hear(3).from, [])
  assert.equal(hear(4).from, [3])
})

test('nobody stands behind a machine that keeps nothing, and nobody behind who is behind it in the image', () => {
  const { hear } = openChain()
  hear(1)
  assert.equal(hear(2, { serves: false, windowBytes: 0 }).from, [1])
  // The first one hands on to a machine already: its link is not divided.
  assert.equal(hear(3).from, [])
  const { hear: other } = openChain()
  other(1, { readBytes: 10 })
  assert.equal(other(2, { readBytes: 20 }).from, [])
})

test('after so many machines the next one begins a chain of its own', () => {
  const { hear } = openChain()
  const heads = Array.from({ length: 25 }, (_, at) => hear(at + 1)).map(({ hops }) => hops)
  assert.is(Math.max(...heads), MAX_HOPS)
  assert.is(heads.filter((hops) => hops === 0).length, 3)
})

test('a machine that begins again stands behind others, and whoever was behind it is in no circle', () => {
  const { hear, again } = openChain()
  for (const index of [1, 2, 3]) hear(index)
  again(1)
  assert.equal(hear(1).from, [])
  assert.equal(hear(2).from, [])
  assert.equal(hear(3).from, [2])
  assert.equal(hear(4).from, [1])
})

test('a machine at the address of another one reads from none that reads from there', () => {
  const { clock, hear } = openChain()
  for (const index of [1, 2, 3]) hear(index)
  assert.equal(hear(4, { host: 1 }), { from: [], hops: 0 })
  // An address that nobody has been at lately may be anybody's.
  clock.ms += SILENT_MS + 1
  for (const index of [2, 3]) hear(index)
  assert.equal(hear(5, { host: 1 }).from, [3, 2])
})

/** Whether an address leads back, through the answers that others got. */
function findCircle(told: ReadonlyMap<number, readonly number[]>, from: number): boolean {
  const open = [...(told.get(from) ?? [])]
  const seen = new Set<number>()
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next === from) return true
    if (seen.has(next)) continue
    seen.add(next)
    open.push(...(told.get(next) ?? []))
  }
  return false
}

test('whatever machines say, and whoever leaves, nobody reads from who reads from it', () => {
  const step = fc.record({
    index: fc.integer({ min: 1, max: 8 }),
    readBytes: fc.integer({ min: 0, max: 200 * MIB }),
    windowBytes: fc.integer({ min: 0, max: 200 * MIB }),
    serves: fc.boolean(),
    waits: fc.constantFrom(0, 1000, SILENT_MS, 2 * SILENT_MS),
    begins: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { clock, hear, again } = openChain()
      const told = new Map<number, readonly number[]>()
      for (const { index, waits, begins, ...said } of steps) {
        clock.ms += waits
        if (begins) again(index)
        const { from, hops } = hear(index, said)
        assert.is(new Set([index, ...from]).size, from.length + 1, 'itself, or somebody twice')
        assert.ok(hops <= MAX_HOPS)
        told.set(index, from)
        assert.not.ok(findCircle(told, index), 'a circle')
      }
    }),
  )
})

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
