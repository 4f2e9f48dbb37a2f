/** Orders of captured images that were used up: the newest thousand are remembered, across restarts. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mkdtempDisposable } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createRecords, selectRecords } from '#kit/host/records.ts'
import { createUsedOrders } from '#cache/captures/captures.ts'
import { DATA_FOLDER } from '#cache/store/data-folder.ts'
import { makeFolder, serveCache } from '#test/support/server/image-cache.ts'
import { z } from 'zod'

const test = suite('used orders of captures')
const START = Date.parse('2026-11-23T10:00:00Z')
const order = (at: number) => `order-${String(at).padStart(4, '0')}`

test('a sweep forgets all but the newest thousand, on disk as well', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-orders-'))
  let now = START
  const open = () => createUsedOrders(createRecords(folder.path), () => new Date(now))
  const used = await open()
  for (let at = 0; at < 1003; at += 1) {
    now += 1000
    await used.add(order(at))
  }
  const known = (orders: typeof used) => [0, 2, 3, 1002].map((at) => orders.has(order(at)))
  assert.equal(known(used), [true, true, true, true])
  await used.sweep()
  assert.equal(known(used), [false, false, true, true])
  assert.equal(known(await open()), [false, false, true, true])
})

test('the cache forgets them at the sweep that its timer runs as well', async () => {
  await using folder = await makeFolder()
  const records = selectRecords(
    createRecords(join(folder.path, DATA_FOLDER, 'records')),
    'order',
    z.object({ usedAt: z.number() }),
  )
  for (let at = 0; at < 1003; at += 1) await records.write(order(at), { usedAt: START + at })
  await using served = await serveCache(folder.path)
  await served.cache.captures.sweep()
  const left = new Map(await records.list())
  assert.equal([left.size, left.has(order(2)), left.has(order(3))], [1000, false, true])
})

test.run()
