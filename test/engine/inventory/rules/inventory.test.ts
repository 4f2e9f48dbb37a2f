/** Inventories as machines post them: what is kept, dropped, refused; and records as they were stored. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MAX_HARDWARE_BYTES } from '#engine/inventory/rules/machine.ts'
import { MAX_HARDWARE_VALUES, parseInventory } from '#engine/inventory/rules/inventory.ts'
import { createMachine, parseRecord } from '#server/current/rules/machine.ts'
import { createFixture, diskOf, MAC, REF } from '#test/support/server/machine-fixture.ts'

const test = suite('inventory')
const NOW = '2026-05-01T00:00:00.000Z'

const parseText = (text: string) => parseInventory(Buffer.from(text))
const parseBody = (body: unknown) => parseText(JSON.stringify(body))

function disksOf(...disks: readonly unknown[]) {
  const parsed = parseBody({ disks })
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.refusal))
  return parsed.value.disks
}

const isTaken = (body: unknown) => parseBody(body).ok

test('a disk has the eight fields, and those of our own clients where they were given', () => {
  assert.is(
    JSON.stringify(disksOf({ path: '/dev/sda', type: 'disk', mountpoints: [null] })),
    JSON.stringify([{ ...diskOf(null), size: null, tran: null }].map(({ ...disk }) => disk)),
  )
  const full = diskOf('S1', { wwn: '0x5', by_path: 'pci-0000:00:1f.2', size_bytes: 5 })
  assert.equal(disksOf(full), [full])
})

test('booleans as every lsblk has said them', () => {
  const rows = [
    [true, true],
    [1, true],
    ['1', true],
    ['true', true],
    ['Yes', true],
    [false, false],
    [0, false],
    ['0', false],
    ['off', false],
    [null, false],
    [undefined, false],
  ] as const
  for (const [said, meant] of rows) {
    assert.is(disksOf({ path: 'a', readonly: said })[0]?.readonly, meant, String(said))
  }
  for (const said of ['', 'maybe', 2, [], {}]) {
    assert.not.ok(isTaken({ disks: [{ path: 'a', removable: said }] }), JSON.stringify(said))
  }
})

test('any transport, any text within its bounds', () => {
  for (const tran of ['sas', 'mmc', 'virtio', '<script>', null, 'x'.repeat(32)]) {
    assert.is(disksOf({ path: 'a', tran })[0]?.tran, tran)
  }
  const long = {
    path: 256,
    size: 33,
    vendor: 65,
    model: 129,
    serial: 129,
    tran: 33,
  }
  for (const [field, characters] of Object.entries(long)) {
    const disk = (count: number) => ({ disks: [{ path: 'a', [field]: 'x'.repeat(count) }] })
    assert.ok(isTaken(disk(characters - 1)), field)
    assert.not.ok(isTaken(disk(characters)), field)
  }
})

test('what our own clients add is dropped where it is not as it must be, never refused', () => {
  const [disk] = disksOf({ path: 'a', wwn: 5, by_path: 'x'.repeat(200), size_bytes: -1 })
  assert.equal([disk?.wwn, disk?.by_path, disk?.size_bytes], [null, null, null])
})

test('refused: no disks, no path, other keys, numbers for serials', () => {
  for (const body of [
    {},
    null,
    [],
    { disks: null },
    { disks: {} },
    { disks: [{}] },
    { disks: [{ path: '' }] },
    { disks: [{ path: 'a', serial: 5 }] },
    { disks: [null] },
    { disks: [], more: 1 },
    { disks: [], lshw: 'text' },
    { disks: [], lshw: 5 },
  ]) {
    assert.not.ok(isTaken(body), JSON.stringify(body)?.slice(0, 60))
  }
})

function hardwareOf(lshw: unknown) {
  const parsed = parseBody({ disks: [{ path: 'a' }], lshw })
  assert.ok(parsed.ok)
  assert.is(parsed.value.disks.length, 1)
  const { hardware } = parsed.value
  return hardware === null ? null : Buffer.from(hardware).toString('utf8')
}

test('the hardware tree is kept as text; one over the limit is left out, the disks are not', () => {
  assert.is(
    hardwareOf({ id: 'core', children: [{ 'ä"': null }] }),
    '{"id":"core","children":[{"ä\\"":null}]}',
  )
  assert.is(hardwareOf([1]), '[1]')
  for (const none of [null, undefined]) assert.is(hardwareOf(none), null)
  const text = 'x'.repeat(MAX_HARDWARE_BYTES - '{"a":""}'.length)
  assert.is(hardwareOf({ a: text })?.length, MAX_HARDWARE_BYTES)
  assert.is(hardwareOf({ a: `${text}x` }), null)
  assert.is(hardwareOf({ a: `${text.slice(2)}€` }), null, 'bytes are counted, not characters')
})

const parsedOf = (text: string) => {
  const parsed = parseText(text)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.refusal))
  return parsed.value
}

test('the tree comes back as the bytes that came, wherever it stands', () => {
  const tree = '{ "id" : "b\\u00f6x",\n "size":12345678901234567890, "clock": 1.0, "e": [ 1E+2 ] }'
  for (const text of [
    `{"disks":[{"path":"a"}],"lshw": ${tree} }`,
    `{"lshw":${tree},"disks":[{"path":"a"}]}`,
    `{"lshw":[],"disks":[],"lshw":${tree},"disks":[{"path":"a"}]}`,
  ]) {
    const { disks, hardware } = parsedOf(text)
    assert.equal([disks.length, Buffer.from(hardware ?? []).toString()], [1, tree])
  }
})

const manyDisks = (count: number) =>
  JSON.stringify({ disks: Array.from({ length: count }, (_, n) => ({ path: `/dev/sd${n}` })) })

test('1,024 disks are kept and the rest is counted', () => {
  for (const [count, kept] of [
    [65, 65],
    [1024, 1024],
    [1500, 1024],
  ] as const) {
    const parsed = parsedOf(manyDisks(count))
    assert.equal([parsed.disks.length, parsed.disksLeftOut], [kept, count - kept])
    assert.is(parsed.disks.at(-1)?.path, `/dev/sd${kept - 1}`)
  }
})

const manyValues = (count: number) => `{"disks":[],"lshw":[${'{},'.repeat(count - 1)}1]}`

test('a tree of too many values, or with a key that readers refuse, is left out', () => {
  assert.ok(parsedOf(manyValues(MAX_HARDWARE_VALUES)).hardware)
  for (const text of [
    manyValues(MAX_HARDWARE_VALUES + 1),
    '{"disks":[],"lshw":{"a":{"__proto__":1}}}',
    '{"disks":[],"lshw":{"\\u005f_proto__":1}}',
  ]) {
    const { hardware, isHardwareLeftOut } = parsedOf(text)
    assert.equal([hardware, isHardwareLeftOut], [null, true])
  }
  assert.is(parsedOf('{"disks":[],"lshw":null}').isHardwareLeftOut, false)
})

const manyChildren = (count: number) =>
  `{"disks":[{"children":[${'{},'.repeat(count)}{}],"path":"/dev/sda"}]}`

test('what lsblk says beside is skipped, unless it is more than any machine has', () => {
  assert.is(parsedOf(manyChildren(100_000)).disks[0]?.path, '/dev/sda')
  const refused = parseText(manyChildren(250_000))
  assert.is(refused.ok || refused.refusal, 'too-many-values')
  assert.not.ok(isTaken({ disks: [{ path: 'x'.repeat(100_000) }] }))
  assert.is(disksOf({ path: 'a', by_path: 'x'.repeat(100_000) })[0]?.by_path, null)
})

test('a tree that is too large is left out unread; any other has to be JSON', () => {
  const large = `{"a":"${'x'.repeat(MAX_HARDWARE_BYTES)}"`
  assert.is(parsedOf(`{"disks":[{"path":"a"}],"lshw":${large}}}`).isHardwareLeftOut, true)
  for (const tree of ['{"a":1', '{"a":01}', '{} []', '{]', '[1,]', '{"a":"']) {
    const parsed = parseText(`{"lshw":${tree}, "disks":[]}`)
    assert.is(parsed.ok || parsed.refusal, 'malformed', tree)
  }
})

test('few of the keys are named that are refused', () => {
  const keys = Array.from({ length: 10_000 }, (_, at) => [`key ${at}`, 0])
  const parsed = parseBody({ disks: [], ...Object.fromEntries(keys) })
  assert.ok(!parsed.ok && JSON.stringify(parsed.refusal).length < 700)
})

test('any JSON is taken or refused', () => {
  const anyDisk = fc.record(
    { path: fc.string(), serial: fc.jsonValue(), removable: fc.jsonValue(), tran: fc.jsonValue() },
    { requiredKeys: [] },
  )
  const anyBody = fc.oneof(fc.jsonValue(), fc.record({ disks: fc.array(anyDisk) }))
  fc.assert(
    fc.property(anyBody, (body) => {
      const parsed = parseBody(body)
      if (!parsed.ok) assert.ok(parsed.refusal === 'malformed' || Array.isArray(parsed.refusal))
    }),
    { numRuns: 2000 },
  )
})

const stored = (machine: unknown): unknown => JSON.parse(JSON.stringify(machine))

test('a record is read as it was stored', () => {
  const fixture = createFixture()
  fixture.disks(diskOf('S1', { wwn: '0x5' }), diskOf(null))
  fixture.flash('flasher-flash-once')
  fixture.script()
  fixture.plan()
  fixture.failed('why')
  assert.equal(parseRecord(stored(fixture.machine)), fixture.machine)
})

test('a record of a release that knew less is read with what does no harm', () => {
  const { mac, boot_mode, created_at, updated_at } = createMachine(MAC, 'flasher-flash-once', NOW)
  const least = { mac, boot_mode, created_at, updated_at, bty_image_ref: REF, sanboot_drive: '$' }
  const read = parseRecord(least)
  assert.equal(
    [read?.bty_image_ref, read?.sanboot_drive, read?.labels, read?.locked, read?.name],
    [REF, null, [], false, null],
  )
  assert.is(read?.cycle.carried, true, 'an unknown cycle may have been a flash under way')
})

test('what is no machine is none', () => {
  for (const text of [null, 5, {}, { ...createMachine(MAC, 'ipxe-exit', NOW), mac: 'x' }]) {
    assert.is(parseRecord(stored(text)), null)
  }
})

test.run()
