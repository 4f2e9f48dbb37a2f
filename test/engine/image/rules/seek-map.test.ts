/** Seek tables of other tools: which frames they give, and that hostile ones take no memory. */
import { spawnSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createTableMap, MAX_FRAMES } from '#engine/image/rules/frame-map.ts'
import {
  encodeSeekTable,
  MAX_SEEK_TABLE_BYTES,
  parseSeekFooter,
  SEEK_FOOTER_BYTES,
} from '#engine/image/rules/zstd.ts'

const test = suite('maps from seek tables')
const MIB = 2 ** 20

type Entries = Parameters<typeof encodeSeekTable>[0]

function mapOf(entries: Entries) {
  const table = encodeSeekTable(entries)
  const footer = parseSeekFooter(table, table.length - SEEK_FOOTER_BYTES)
  return footer.ok ? createTableMap(table, footer.value) : null
}

const many = (count: number, contentBytes: number): Entries =>
  Array.from({ length: count }, () => ({ storedBytes: 1, contentBytes }))

test('each frame lies where those before it end, and what holds nothing is no frame', () => {
  const map = mapOf([
    { storedBytes: 20, contentBytes: 0 },
    { storedBytes: 300, contentBytes: MIB },
    { storedBytes: 7, contentBytes: 0 },
    { storedBytes: 500, contentBytes: 2 * MIB },
    { storedBytes: 9, contentBytes: 0 },
  ])
  assert.ok(map !== null)
  const known = { isZero: false, sha256: null }
  assert.equal([map.count, map.bytes, map.maxBytes, map.maxStoredBytes], [2, 3 * MIB, 2 * MIB, 500])
  assert.equal(
    [map.at(0), map.at(1)],
    [
      { index: 0, offset: 0, bytes: MIB, storedAt: 20, storedBytes: 300, ...known },
      { index: 1, offset: MIB, bytes: 2 * MIB, storedAt: 327, storedBytes: 500, ...known },
    ],
  )
})

test('frames that are too small, too large, too many, or only one are not entered', () => {
  assert.ok(mapOf(many(4, 128 * 1024)) !== null)
  assert.is(mapOf(many(4, 128 * 1024 - 1)), null)
  assert.is(mapOf(many(4, 16 * MIB + 1)), null)
  assert.is(mapOf(many(1, MIB)), null)
  assert.is(mapOf([]), null)
  assert.ok(mapOf(many(MAX_FRAMES, MIB)) !== null)
  assert.is(mapOf(many(MAX_FRAMES + 1, MIB)), null)
})

/** The script runs in a process that has no room for a list of the entries. */
const SCRIPT = `
  const [{ createTableMap }, { parseSeekFooter, SEEK_FOOTER_BYTES }] = await Promise.all([
    import('${new URL('../../../../runtime/engine/image/rules/frame-map.ts', import.meta.url)}'),
    import('${new URL('../../../../runtime/engine/image/rules/zstd.ts', import.meta.url)}'),
  ])
  const frames = ${Math.floor((MAX_SEEK_TABLE_BYTES - 17) / 8)}
  const table = Buffer.alloc(frames * 8 + 17, 1)
  const footer = table.length - SEEK_FOOTER_BYTES
  table.writeUInt32LE(frames, footer)
  table.writeUInt8(0, footer + 4)
  table.writeUInt32LE(0x8f92eab1, footer + 5)
  for (const contentBytes of [1, 4 * 2 ** 20]) {
    for (let frame = 0; frame < frames; frame += 1) table.writeUInt32LE(contentBytes, 12 + frame * 8)
    console.log(String(createTableMap(table, parseSeekFooter(table, footer).value)))
  }`

test('the largest table, of tiny frames or of frames that it invents, takes no memory', () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--max-old-space-size=24', '--input-type=module', '-e', SCRIPT],
    { encoding: 'utf8' },
  )
  assert.is(status, 0, stderr)
  assert.is(stdout, 'null\nnull\n')
})

test.run()
