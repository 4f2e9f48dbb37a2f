import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { DiskRow } from '#engine/disk/rules/lsblk.ts'
import {
  DISK_COLUMNS,
  imageColumns,
  renderDiskCells,
  renderImageCells,
  renderImageFields,
} from '#flasher/commands/rules/list-tables.ts'
import { renderTable } from '#kit/terminal/text/columns.ts'

const DISK: DiskRow = {
  path: '/dev/nvme0n1',
  size: '465.8G',
  type: 'disk',
  vendor: null,
  model: 'Samsung SSD 980 500GB',
  serial: 'S5GXNX0T100001',
  tran: 'nvme',
  removable: false,
  readonly: false,
  mountpoints: ['/'],
  size_bytes: 500_107_862_016,
  in_use_by: ['this system', '/'],
}

const linesOf = (isExact: boolean, width: number | null) => {
  const other = { ...DISK, path: '/dev/nvme1n1', serial: 'S5GXNX0T100002', in_use_by: [] }
  const rows = [DISK, other].map((disk) => renderDiskCells(disk, isExact))
  return renderTable(rows, DISK_COLUMNS, { width, unicode: true }).trimEnd().split('\n')
}

const test = suite('list tables')

test("the specification's columns in their order, then what uses the disk", () => {
  const [head = '', , one = '', two = ''] = linesOf(false, null)
  assert.equal(head.trim().split(/ {2,}/), [
    'PATH',
    'SIZE',
    'TRAN',
    'VENDOR',
    'MODEL',
    'SERIAL',
    'REMOVABLE',
    'IN USE BY',
  ])
  assert.is(
    one,
    '/dev/nvme0n1  500 GB  nvme          Samsung SSD 980 500GB  S5GXNX0T100001  no         this system, /',
  )
  assert.is(
    two,
    one
      .replace('0n1', '1n1')
      .replace('0001', '0002')
      .replace(/ {9}this.*/, ''),
  )
})
test('a virtio disk is called one', () => {
  const virtio = renderDiskCells({ ...DISK, vendor: '0x1af4', model: null }, false)
  assert.equal([virtio.vendor, virtio.model], [null, 'virtio disk'])
})
test('sizes are in bytes where that is asked for', () => {
  assert.match(linesOf(true, null)[2] ?? '', /^\/dev\/nvme0n1 {2}500107862016 {2}nvme/)
  const image = { name: 'a.img', path: '/a.img', format: 'img', size_bytes: 8_388_608 } as const
  const lay = (isExact: boolean) => renderTable([renderImageCells(image)], imageColumns(isExact))
  assert.match(lay(false), /^NAME +FORMAT +SIZE\n.*\na\.img +img +8\.39 MB\n$/)
  assert.match(lay(true), /^NAME +FORMAT +SIZE_BYTES\n.*\na\.img +img +8388608\n$/)
})
test('on narrow terminals path and size are whole, and the serial number is shortened last', () => {
  for (const width of [100, 80, 60, 50, 42]) {
    const lines = linesOf(false, width)
    for (const line of lines) assert.ok(line.length <= width, line)
    assert.match(lines[2] ?? '', /^\/dev\/nvme0n1 {2}500 GB {2}.*S5GXNX0T100001/)
  }
  const [, , one, two] = linesOf(false, 32)
  assert.is(one, '/dev/nvme0n1  500 GB  S5GXN…0001')
  assert.is(two, '/dev/nvme1n1  500 GB  S5GXN…0002')
})
test("an image's fields are the specification's; for people, sizes in words stand beside", () => {
  const image = { path: 'a', format: null, size_bytes: 1000, virtual_size_bytes: null }
  assert.equal(renderImageFields(image, true), {
    path: 'a',
    format: 'null',
    size_bytes: 1000,
    virtual_size_bytes: null,
  })
  assert.equal(Object.entries(renderImageFields(image, false))[3], ['size', '1.00 kB'])
})
test.run()
