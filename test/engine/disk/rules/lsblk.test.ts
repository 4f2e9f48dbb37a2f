import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { TargetDevice } from '#engine/disk/rules/disk.ts'
import { indexNodes, type LsblkNode, parseLsblk, renderDiskRow } from '#engine/disk/rules/lsblk.ts'
import { SERVER, type Machine } from '#test/support/server/machines.ts'

const test = suite('lsblk')

const parse = (devices: unknown) => parseLsblk(JSON.stringify({ blockdevices: devices }))
const nodesOf = (devices: unknown) => {
  const parsed = parse(devices)
  if (!parsed.ok) throw new Error(parsed.refusal)
  return parsed.value
}
/** Makes the device as the kernel knows it. */
const deviceOf = ({ path, serial }: LsblkNode): TargetDevice => ({
  node: path,
  type: 'disk',
  sectorBytes: 512,
  readonly: false,
  vendor: null,
  model: null,
  tran: null,
  identity: { serial, wwn: null, sizeBytes: 1_000_000_000, diskseq: null },
  zeros: { loop: null, writeZeroesMaxBytes: 0, discardMaxBytes: 0 },
  uses: [
    { kind: 'mounted', device: `${path}1`, at: '/srv' },
    { kind: 'running-system', device: path },
    { kind: 'holder', device: path, holder: '/dev/md0', what: 'raid1' },
    { kind: 'mounted', device: `${path}2`, at: '/srv' },
  ],
})
const rowsOf = ({ lsblk }: Machine) =>
  nodesOf(lsblk)
    .filter(({ type }) => type === 'disk')
    .map((node) => renderDiskRow(node, deviceOf(node)))
const refused = { ok: false, refusal: 'not-lsblk-json' }

test('a row has the ten keys of the document, in their order, then its bytes and its users', () => {
  const usb = rowsOf(SERVER).find(({ path }) => path === '/dev/sdc')
  assert.is(
    JSON.stringify(usb),
    '{"path":"/dev/sdc","size":"1G","type":"disk","vendor":"Generic","model":"Flash Disk","serial":null,"tran":"usb","removable":true,"readonly":false,"mountpoints":[],"size_bytes":1000000000,"in_use_by":["this system","/srv","/dev/md0 (RAID 1)"]}',
  )
})

test('mount points are those of everything below, each once', () => {
  const points = Object.fromEntries(
    rowsOf(SERVER).map(({ path, mountpoints }) => [path, mountpoints]),
  )
  assert.equal(points['/dev/nvme0n1'], ['/boot/efi', '/', '[SWAP]'])
  assert.equal(points['/dev/sda'], ['/srv'])
  assert.equal(points['/dev/sdb'], ['/srv'])
  assert.equal(points['/dev/cciss/c0d0'], ['/mnt/a b'])
})

test('a child of two parents is one node', () => {
  const nodes = indexNodes(nodesOf(SERVER.lsblk))
  assert.is([...nodes.keys()].filter((name) => name === 'md127').length, 1)
  assert.is(nodes.get('dm-3')?.path, '/dev/mapper/mpatha')
})

test('reads what util-linux printed before 2.37 and before 2.33', () => {
  const [node] = nodesOf([
    { name: 'sda', size: '8G', type: 'disk', rm: '0', ro: '1', mountpoint: '/old', model: ' ' },
  ])
  assert.is(node?.path, '/dev/sda')
  assert.is(node?.kname, 'sda')
  assert.is(node?.removable, false)
  assert.is(node?.readonly, true)
  assert.is(node?.model, null)
  assert.equal(node?.mountpoints, ['/old'])
  assert.equal(nodesOf([{ name: 'sda', type: 'disk', mountpoint: null }])[0]?.mountpoints, [])
})

test('reads bytes as well as sizes for people', () => {
  assert.is(nodesOf([{ name: 'sda', type: 'disk', size: 512110190592 }])[0]?.size, '512110190592')
})

test('no device at all is an answer', () => {
  assert.equal(parse([]), { ok: true, value: [] })
})

test('refuses what is not a list of devices', () => {
  for (const text of ['', 'null', '[]', '{}', '{"blockdevices":{}}', '{"blockdevices":[', '"x"'])
    assert.equal(parseLsblk(text), refused, text)
  for (const bad of [[null], [1], [{}], [{ name: 'sda' }], [{ name: null, type: 'disk' }]])
    assert.equal(parse(bad), refused)
  assert.equal(parse([{ name: 'a', type: 'disk', children: [{ name: 'b' }] }]), refused)
  assert.equal(parse([{ name: 'a', type: 'disk', children: 'b' }]), refused)
})

test('refuses a tree that is too deep or too large, never cuts it', () => {
  const deep = '{"name":"a","type":"disk","children":['
  const text = `{"blockdevices":[${deep.repeat(1000)}${']}'.repeat(1000)}]}`
  assert.equal(parseLsblk(text), refused)
  assert.equal(parse(Array.from({ length: 100_001 }, () => ({ name: 'a', type: 'disk' }))), refused)
})

test('inherited properties are not there', () => {
  assert.equal(parseLsblk('{"__proto__":{"blockdevices":[]}}'), refused)
})

const checkShape = (text: string) => {
  const parsed = parseLsblk(text)
  if (!parsed.ok) return
  for (const node of indexNodes(parsed.value).values()) {
    assert.type(node.name, 'string')
    assert.type(node.removable, 'boolean')
    for (const point of node.mountpoints) assert.ok(typeof point === 'string' && point !== '')
  }
  for (const node of parsed.value) {
    assert.is(Object.keys(renderDiskRow(node, deviceOf(node))).length, 12)
  }
}

test('any text and any JSON gives an answer of the promised shape', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), checkShape))
  fc.assert(fc.property(fc.json(), checkShape))
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom('disk', 'part', '0', '1', null, true))
  const node = fc.letrec((tie) => ({
    node: fc.record(
      {
        name: fc.oneof({ weight: 9, arbitrary: fc.string() }, value),
        type: fc.oneof({ weight: 9, arbitrary: fc.constant('disk') }, value),
        kname: value,
        size: value,
        rm: value,
        ro: value,
        mountpoints: fc.oneof(fc.array(value), value),
        mountpoint: value,
        children: fc.oneof({ maxDepth: 3 }, fc.constant([]), fc.array(tie('node'))),
      },
      { requiredKeys: ['name', 'type'] },
    ),
  })).node
  fc.assert(
    fc.property(fc.array(node), (blockdevices) => checkShape(JSON.stringify({ blockdevices }))),
  )
})

test('a device whose every byte was changed is still told or refused', () => {
  const text = JSON.stringify({ blockdevices: SERVER.lsblk })
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.string({ maxLength: 3 }), (at, put) => {
      parseLsblk(text.slice(0, at) + put + text.slice(at + put.length))
      parseLsblk(text.slice(0, at))
    }),
  )
})

test.run()
