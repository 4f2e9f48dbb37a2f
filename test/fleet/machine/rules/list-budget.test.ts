/** Disks of machines that nobody has set up: all are kept while there is room, then few, the flashable first. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  MAX_SHORT_BYTES,
  MAX_SHORT_DISKS,
  MAX_UNASSIGNED_BYTES,
  shortenList,
  weighDisks,
} from '#fleet/machine/rules/query.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { diskOf } from '#test/support/server/machine-fixture.ts'

const test = suite('list budget')

const inventoryOf = (disks: readonly InventoryDisk[], disksLeftOut = 0) => ({
  disks,
  disksLeftOut,
  hardware: null,
  isHardwareLeftOut: false,
  secureBoot: null,
  bmcAddress: null,
  ownSerials: null,
})
const LONG = {
  path: 'p'.repeat(255),
  size: 's'.repeat(32),
  vendor: 'v'.repeat(64),
  model: 'm'.repeat(128),
  serial: 'n'.repeat(128),
  tran: 't'.repeat(32),
  removable: false,
  readonly: false,
  wwn: 'w'.repeat(122),
  by_path: 'b'.repeat(122),
}
const FLOOD = Array.from({ length: 1024 }, () => LONG)

test('while there is room the list stays as it came', () => {
  const whole = inventoryOf(FLOOD)
  assert.is(shortenList(whole, 0), whole)
  assert.is(shortenList(whole, MAX_UNASSIGNED_BYTES - weighDisks(FLOOD)), whole)
})

test('beyond it few are kept, those that can be flashed first, and the others are counted', () => {
  const ordinary = Array.from({ length: 100 }, (_, n) =>
    diskOf(`S${n}`, { readonly: n < 98, size_bytes: 10 }),
  )
  const { disks, disksLeftOut, isShortened } = shortenList(
    inventoryOf(ordinary, 5),
    MAX_UNASSIGNED_BYTES,
  )
  assert.equal(
    disks.slice(0, 3).map(({ serial }) => serial),
    ['S98', 'S99', 'S0'],
  )
  assert.is(disks.length + disksLeftOut, 105)
  assert.ok(disks.length <= MAX_SHORT_DISKS && weighDisks(disks) <= MAX_SHORT_BYTES)
  assert.is(isShortened, true)
})

test('a short list is whole beyond it too', () => {
  const usual = inventoryOf([diskOf('S1'), diskOf('S2')])
  assert.is(shortenList(usual, MAX_UNASSIGNED_BYTES * 10), usual)
})

test('twenty thousand machines with the longest lists fit into a small host', () => {
  let others = 0
  for (let n = 0; n < 20_000; n += 1) {
    others += weighDisks(shortenList(inventoryOf(FLOOD), others).disks)
  }
  assert.ok(others <= MAX_UNASSIGNED_BYTES + 20_000 * MAX_SHORT_BYTES)
  assert.ok(others < 256 * 2 ** 20)
})

const macOf = (n: number) => `52:54:00:00:00:${n.toString(16).padStart(2, '0')}`

test('a server keeps few disks of those that come last, and says so', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 40; n += 1) {
    await server.request(`/pxe/${macOf(n)}`)
    const { status } = await server.request(`/pxe/${macOf(n)}/inventory`, asJson({ disks: FLOOD }))
    assert.is(status, 204)
  }
  const all = await server.machines.list()
  const kept = all.map(({ known_disks }) => known_disks ?? [])
  const sum = kept.reduce((bytes, disks) => bytes + weighDisks(disks), 0)
  assert.ok(sum < MAX_UNASSIGNED_BYTES + 40 * MAX_SHORT_BYTES)
  assert.is(kept[0]?.length, 1024)
  assert.ok((kept.at(-1)?.length ?? 0) > 0 && (kept.at(-1)?.length ?? 0) <= MAX_SHORT_DISKS)
  assert.ok(process.memoryUsage().heapUsed - before < 300 * 2 ** 20)
  const events = await (await ask('/events')).text()
  assert.match(events, 'machines without an image have too many disks in total')
})

test('the earlier line keeps none of them', async () => {
  await using server = await createEarlierServer()
  await server.request(`/pxe/${macOf(1)}`)
  const { status } = await server.request(`/pxe/${macOf(1)}/inventory`, asJson({ disks: FLOOD }))
  assert.is(status, 204)
  const text = JSON.stringify(await server.machines.list())
  assert.ok(text.length < 10_000)
})

test.run()
