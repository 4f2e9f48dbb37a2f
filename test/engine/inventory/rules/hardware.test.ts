import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listOwnSerials, parseHardware } from '#engine/inventory/rules/inventory.ts'

const test = suite('parseHardware')
const tree = (children: readonly unknown[], more: object = {}) =>
  JSON.stringify({ id: 'box', class: 'system', vendor: 'ACME', product: 'X1', ...more, children })

const boxOf = (system: unknown, board: unknown) =>
  JSON.stringify({
    id: 'box',
    class: 'system',
    serial: system,
    children: [
      {
        id: 'core',
        class: 'bus',
        serial: board,
        children: [{ id: 'memory', class: 'memory', serial: 'DIMM-1' }],
      },
      { id: 'network', class: 'network', serial: '52:54:00:00:00:01' },
    ],
  })

test('finds what a person asks for first', () => {
  const hardware = parseHardware(
    tree([
      {
        id: 'core',
        class: 'bus',
        children: [
          {
            id: 'firmware',
            class: 'memory',
            vendor: 'BIOS Inc.',
            version: '2.1',
            date: '01/02/2025',
          },
          { id: 'memory', class: 'memory', size: 8_589_934_592 },
          { id: 'cpu:0', class: 'processor', product: 'CPU 9', configuration: { cores: '4' } },
          { id: 'cpu:1', class: 'processor', product: 'CPU 9', configuration: { cores: '4' } },
          { id: 'cpu:2', class: 'processor', product: 'CPU 9', disabled: true },
          {
            id: 'network',
            class: 'network',
            product: 'NIC',
            logicalname: ['eth0', 'lan'],
            serial: 'aa:bb',
          },
        ],
      },
    ]),
  )
  assert.equal(hardware, {
    vendor: 'ACME',
    model: 'X1',
    serial: null,
    processors: ['CPU 9', 'CPU 9'],
    cores: 8,
    memoryBytes: 8_589_934_592,
    networks: ['NIC (eth0 aa:bb)'],
    firmware: 'BIOS Inc. 2.1 01/02/2025',
  })
})

test('an array, as some versions print it', () => {
  assert.is(parseHardware(`[${tree([])}]`)?.model, 'X1')
})

test('what is no tree is none, and hostile trees do no harm', () => {
  for (const text of ['', 'null', '7', '"x"', '[]', '{', '[[[]]]']) {
    assert.is(parseHardware(text)?.vendor ?? null, null, text)
  }
  const wide = tree(Array.from({ length: 20_000 }, () => ({ class: 'network', product: 'N' })))
  assert.is(parseHardware(wide)?.networks.length, 8)
  const odd = tree([{ id: 7, class: ['processor'], children: 'no' }], { vendor: { a: 1 } })
  assert.is(parseHardware(odd)?.vendor, null)
  assert.is(parseHardware(tree([], { vendor: 'a\u202eb\u0000' }))?.vendor, 'a\\u202eb\\x00')
  assert.is(parseHardware(tree([], { vendor: 'v'.repeat(500) }))?.vendor?.length, 120)
})

test('the serial numbers of the machine itself are those of its system and its boards', () => {
  const rows: readonly (readonly [unknown, unknown, readonly string[]])[] = [
    ['CZJ1234', 'PVBK0A1', ['CZJ1234', 'PVBK0A1']],
    [' CZJ1234 ', 'CZJ1234', ['CZJ1234']],
    ['To Be Filled By O.E.M.', 'PVBK0A1', ['PVBK0A1']],
    ['Default string', '0123456789', []],
    ['00000000', 'System Serial Number', []],
    ['Not Specified', 'None', []],
    [7, null, []],
    ['x', '..CN7475154K0123.', ['..CN7475154K0123.']],
  ]
  for (const [system, board, expected] of rows) {
    assert.equal(listOwnSerials(JSON.parse(boxOf(system, board))), expected, `${system}, ${board}`)
    assert.equal(listOwnSerials([JSON.parse(boxOf(system, board))]), expected)
  }
  for (const none of [undefined, 7, [], 'text', { children: [7] }])
    assert.equal(listOwnSerials(none), [])
})

test.run()
