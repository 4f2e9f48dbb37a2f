/** The qcow2 tables: what an entry says, which entries are one run, and hostile tables. */
import { constants, zstdCompressSync } from 'node:zlib'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type CompressedPart,
  groupCompressed,
  nextRun,
  parseL1Entry,
  parseL2Entry,
  type Qcow2Header,
} from '#engine/image/rules/qcow2.ts'
import { findFrameEnd } from '#engine/image/rules/zstd.ts'

const tables = suite('qcow2 tables')
const GIB = 2 ** 30
const plain: Qcow2Header = {
  version: 3,
  virtualBytes: GIB,
  clusterBits: 16,
  clusterBytes: 65536,
  compression: 'zlib',
  extendedL2: false,
  l1Offset: 3 * 65536,
  l1Entries: 2,
  guestBytesPerTable: GIB / 2,
  refcountOffset: 65536,
  refcountBytes: 65536,
  hostEnd: 16 * 65536,
}
const older: Qcow2Header = { ...plain, version: 2 }
const extended: Qcow2Header = { ...plain, extendedL2: true, guestBytesPerTable: GIB / 4 }
/** An L2 or L1 table that begins with these entries. */
function makeTable(...entries: readonly bigint[]): Buffer {
  const table = Buffer.alloc(65536)
  entries.forEach((entry, index) => table.writeBigUInt64BE(entry, index * 8))
  return table
}
const COPIED = 1n << 63n
const PACKED = 1n << 62n
const clusterAt = (index: number) => COPIED | BigInt(index * 65536)
const packedPart = (guest: number, host: number, hostBytes: number): CompressedPart => ({
  at: guest,
  guest,
  run: { kind: 'compressed', bytes: 65536, host, hostBytes, skip: 0 },
})

tables('an L1 entry is nowhere, a table, or broken', () => {
  const rows: readonly (readonly [bigint, unknown])[] = [
    [0n, { ok: true, value: 0 }],
    [COPIED, { ok: true, value: 0 }],
    [clusterAt(5), { ok: true, value: 5 * 65536 }],
    [BigInt(5 * 65536), { ok: true, value: 5 * 65536 }],
    [clusterAt(5) | 1n, { ok: false, refusal: 'reserved-bits' }],
    [clusterAt(5) | PACKED, { ok: false, refusal: 'reserved-bits' }],
    [clusterAt(5) | 512n, { ok: false, refusal: 'unaligned' }],
    [clusterAt(15), { ok: true, value: 15 * 65536 }],
    [clusterAt(16), { ok: false, refusal: 'outside-file' }],
    [0x00fffffffffffe00n, { ok: false, refusal: 'unaligned' }],
    [0x00ffffffffff0000n, { ok: false, refusal: 'outside-file' }],
    [clusterAt(3), { ok: false, refusal: 'inside-tables' }],
  ]
  for (const [entry, expected] of rows) {
    assert.equal(parseL1Entry(makeTable(entry), 0, plain), expected)
  }
})
tables('an L2 entry is unallocated, zero, data or compressed', () => {
  const rows: readonly (readonly [bigint, Qcow2Header, unknown])[] = [
    [0n, plain, { ok: true, value: { kind: 'unallocated' } }],
    [1n, plain, { ok: true, value: { kind: 'zero' } }],
    [clusterAt(6) | 1n, plain, { ok: true, value: { kind: 'zero' } }],
    [1n, older, { ok: false, refusal: 'zero-flag' }],
    [clusterAt(6), older, { ok: true, value: { kind: 'data', host: 6 * 65536 } }],
    [clusterAt(6) | 512n, plain, { ok: false, refusal: 'unaligned' }],
    [clusterAt(6) | 2n, plain, { ok: false, refusal: 'reserved-bits' }],
    [clusterAt(6) | (1n << 60n), plain, { ok: false, refusal: 'reserved-bits' }],
    // With clusters of 64 KiB the offset has 54 bits: two more sectors follow the first.
    [
      PACKED | (2n << 54n) | 70000n,
      plain,
      { ok: true, value: { kind: 'compressed', host: 70000, hostBytes: 3 * 512 - (70000 % 512) } },
    ],
  ]
  for (const [entry, about, expected] of rows) {
    assert.equal(parseL2Entry(makeTable(entry), 0, about), expected)
  }
})
tables('an extended L2 entry says which subclusters hold data', () => {
  const host = 6 * 65536
  const rows: readonly (readonly [bigint, bigint, unknown])[] = [
    [0n, 0n, { ok: true, value: { kind: 'unallocated' } }],
    [0n, 0xffffffff00000000n, { ok: true, value: { kind: 'zero' } }],
    [clusterAt(6), 0xffffffffn, { ok: true, value: { kind: 'data', host } }],
    [clusterAt(6), 5n, { ok: true, value: { kind: 'subclusters', host, allocated: 5 } }],
    [clusterAt(6), 0n, { ok: true, value: { kind: 'unallocated' } }],
    [clusterAt(6), 0x100000001n, { ok: false, refusal: 'subcluster-bits' }],
    [0n, 1n, { ok: false, refusal: 'subcluster-bits' }],
    [clusterAt(6) | 1n, 0n, { ok: false, refusal: 'zero-flag' }],
    [PACKED | 70000n, 1n, { ok: false, refusal: 'subcluster-bits' }],
  ]
  for (const [entry, bitmap, expected] of rows) {
    assert.equal(parseL2Entry(makeTable(entry, bitmap), 0, extended), expected)
  }
})
tables('neighbours in guest and file are one run', () => {
  const table = makeTable(clusterAt(5), clusterAt(6), clusterAt(8), 0n, 1n, clusterAt(7))
  const run = (from: number, limit: number) => nextRun(table, from, limit, plain)
  const unit = 65536
  assert.equal(run(0, unit), { ok: true, value: { kind: 'data', bytes: unit, host: 5 * unit } })
  assert.equal(run(0, GIB), { ok: true, value: { kind: 'data', bytes: 2 * unit, host: 5 * unit } })
  assert.equal(run(100, 9 * unit), {
    ok: true,
    value: { kind: 'data', bytes: 2 * unit - 100, host: 5 * unit + 100 },
  })
  assert.equal(run(3 * unit, GIB), { ok: true, value: { kind: 'zeros', bytes: 2 * unit } })
  assert.equal(run(6 * unit, GIB), {
    ok: true,
    value: { kind: 'zeros', bytes: GIB / 2 - 6 * unit },
  })
  assert.equal(nextRun(null, GIB / 2, 1, plain), {
    ok: true,
    value: { kind: 'zeros', bytes: GIB / 2 },
  })
})
tables('damage behind a sound run is reported when its turn comes', () => {
  const table = makeTable(clusterAt(5), clusterAt(16))
  assert.ok(nextRun(table, 0, GIB, plain).ok)
  assert.equal(nextRun(table, 65536, GIB, plain), { ok: false, refusal: 'outside-file' })
})
tables('only what is read of the last cluster must be in the file', () => {
  const small: Qcow2Header = { ...plain, virtualBytes: 65536 + 1000, hostEnd: 8 * 65536 + 1000 }
  const table = makeTable(clusterAt(5), clusterAt(8))
  assert.equal(nextRun(table, 65536, GIB, small), {
    ok: true,
    value: { kind: 'data', bytes: 1000, host: 8 * 65536 },
  })
  const cut = nextRun(table, 65536, GIB, { ...small, hostEnd: small.hostEnd - 1 })
  assert.equal(cut, { ok: false, refusal: 'outside-file' })
})
tables('any table covers the guest without a gap and names nothing outside the file', () => {
  const entry = fc.oneof(
    fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
    fc.integer({ min: 4, max: 15 }).map(clusterAt),
    fc.nat(16 * 65536).map((at) => PACKED | BigInt(at)),
    fc.constantFrom(0n, 1n),
  )
  const abouts = fc.constantFrom(plain, older, extended, { ...plain, hostEnd: 2 ** 53 - 1 })
  fc.assert(
    fc.property(
      fc.array(entry, { maxLength: 40 }),
      abouts,
      fc.nat(2 ** 20),
      (entries, about, limit) => {
        const table = makeTable(...entries)
        const end = Math.min(about.guestBytesPerTable, about.virtualBytes)
        let at = 0
        while (at < end) {
          const run = nextRun(table, at, limit, about)
          if (!run.ok) return true
          const { value } = run
          assert.ok(value.bytes > 0)
          if (value.kind === 'data') assert.ok(value.host + value.bytes <= about.hostEnd)
          if (value.kind === 'compressed') {
            assert.ok(value.host + value.hostBytes <= about.hostEnd)
            assert.ok(value.hostBytes <= 2 * about.clusterBytes)
          }
          at += value.bytes
        }
        return at === end
      },
    ),
    { numRuns: 1000 },
  )
})
tables('compressed neighbours are read as one, in whatever order they lie', () => {
  const [a, b, c, d] = [
    packedPart(0, 90_000, 1000),
    packedPart(1, 70_000, 20_100),
    packedPart(2, 500_000, 600_000),
    packedPart(3, 91_000, 10),
  ]
  assert.equal(groupCompressed([a, b, c, d]), [
    { host: 70_000, bytes: 21_010, parts: [b, a, d] },
    { host: 500_000, bytes: 600_000, parts: [c] },
  ])
})
tables('a zstd frame ends where its last block does, whatever follows', () => {
  const content = Buffer.from('abcdefgh'.repeat(40_000))
  for (const checksumFlag of [0, 1]) {
    const params = { [constants.ZSTD_c_checksumFlag]: checksumFlag }
    const frame = zstdCompressSync(content, { params })
    const followed = Buffer.concat([frame, frame.subarray(0, 20)])
    assert.is(findFrameEnd(followed), frame.length)
    for (let bytes = 0; bytes < frame.length; bytes += 1) {
      assert.is(findFrameEnd(frame.subarray(0, bytes)), null)
    }
  }
  const skippable = Buffer.from('502a4d1802000000ffff', 'hex')
  assert.is(findFrameEnd(skippable), 10)
  assert.is(findFrameEnd(skippable.subarray(0, 9)), null)
  assert.is(findFrameEnd(Buffer.alloc(64)), null)
})
tables.run()
