/** A clock that is set while images come: nothing is abandoned for it, unbound, or removed out of turn. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { bring, makeFolder, openCache } from '#test/support/server/image-cache.ts'

const test = suite('cache: a clock that is moved')
const START = Date.parse('2026-11-21T06:55:53.000Z')
const YEAR = 365 * 86_400_000
const HOUR = 3_600_000
const MOVES = [0, 30, -20, 1, 0]
const SOURCE = {
  mac: null,
  hostname: null,
  run: null,
  disk: { path: null, model: null, serial: 'S', size_bytes: 1_000_000 },
  generalized: false,
}

test('an upload and a capture in progress stay, also after restarts, and go after a silent day', async () => {
  await using folder = await makeFolder()
  const clock = { years: 0, elapsed: 0 }
  const open = () =>
    openCache(folder.path, {
      now: () => new Date(START + clock.years * YEAR + clock.elapsed),
      elapsed: () => clock.elapsed,
    })
  for (const [turn, years] of MOVES.entries()) {
    clock.years = years
    await using cache = await open()
    if (turn === 0) {
      const upload = { name: 'a.img', size_bytes: 9, sha256: null, version: '1' }
      await cache.uploads.create(upload)
      await cache.captures.begin(
        { name: 'b.img.zst', source: SOURCE },
        { token: 't', order: 'order-1', issuedAt: 1 },
      )
    }
    for (const moved of MOVES) {
      clock.years = moved
      clock.elapsed += HOUR / 2
      await cache.uploads.sweep()
      await cache.captures.sweep()
    }
    const kept = [cache.uploads.list().length, cache.captures.list().length]
    assert.equal(kept, [1, 1], `start ${turn}`)
  }
  // 12.5 hours of silence so far, in five processes.
  await using cache = await open()
  clock.elapsed += 12 * HOUR
  await cache.uploads.sweep()
  await cache.captures.sweep()
  assert.equal([cache.uploads.list().length, cache.captures.list().length], [0, 0])
})

test('what machines are bound to stays so, and the least recently used image goes first', async () => {
  await using folder = await makeFolder()
  await using source = await startHostileServer((request, response) =>
    sendFile(makeBytes(100_000, Number(request.url?.split('/')[1])), request, response),
  )
  const src = (seed: number) => `${source.origin}/${seed}/x.img`
  const clock = { years: 0 }
  const now = () => new Date(START + clock.years * YEAR)
  const ref = refOf(src(1))
  {
    await using cache = await openCache(folder.path, { maxBytes: 350_000, now })
    await bring(cache, { name: 'bound', src: src(1) })
    await cache.pin('a-server', [ref.ok ? ref.value : ''])
    clock.years = 30
    await bring(cache, { name: 'ahead', src: src(2) })
    clock.years = -20
    await bring(cache, { name: 'newer', src: src(3) })
    await cache.pin('another', [])
    await bring(cache, { name: 'n4', src: src(4) })
    const states = cache.rows().map(({ entry, state }) => `${entry.name} ${state}`)
    assert.equal(states, ['ahead absent', 'bound ready', 'n4 ready', 'newer ready'])
  }
  clock.years = 30
  await using cache = await openCache(folder.path, { maxBytes: 350_000, now })
  await bring(cache, { name: 'n5', src: src(5) })
  assert.ok(cache.rows().find(({ entry }) => entry.name === 'bound')?.isPinned)
})

test.run()
