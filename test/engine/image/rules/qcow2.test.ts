/** The qcow2 header: what is accepted, what is refused and in which words, and hostile bytes. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  parseQcow2Header,
  renderQcow2Refusal,
  type Qcow2Header,
  type Qcow2Refusal,
} from '#engine/image/rules/qcow2.ts'

const GIB = 2 ** 30
const FEATURES = 72

/** A sound header of 1 GiB in clusters of 64 KiB, changed by `edit`. */
function makeHead(edit: (head: Buffer) => void = () => {}, version = 3): Buffer {
  const head = Buffer.alloc(112)
  head.writeUInt32BE(0x514649fb, 0)
  head.writeUInt32BE(version, 4)
  head.writeUInt32BE(16, 20)
  head.writeBigUInt64BE(BigInt(GIB), 24)
  head.writeUInt32BE(2, 36)
  head.writeBigUInt64BE(0x30000n, 40)
  head.writeBigUInt64BE(0x10000n, 48)
  head.writeUInt32BE(1, 56)
  if (version === 3) head.writeUInt32BE(112, 100)
  edit(head)
  return head
}

function accepted(head: Buffer, fileBytes: number | null = null): Qcow2Header {
  const parsed = parseQcow2Header(head, fileBytes)
  if (!parsed.ok) throw new Error(renderQcow2Refusal(parsed.refusal))
  return parsed.value
}

function refused(head: Buffer, fileBytes: number | null = null): Qcow2Refusal {
  const parsed = parseQcow2Header(head, fileBytes)
  if (parsed.ok) throw new Error('was accepted')
  return parsed.refusal
}

const setFeature = (bit: number) => (head: Buffer) => {
  head.writeBigUInt64BE(head.readBigUInt64BE(FEATURES) | (1n << BigInt(bit)), FEATURES)
}
const setAt = (at: number, value: number) => (head: Buffer) => {
  head.writeUInt32BE(value, at)
}

const header = suite('parseQcow2Header')

header('reads versions 2 and 3', () => {
  const expected = {
    version: 3,
    virtualBytes: GIB,
    clusterBits: 16,
    clusterBytes: 65536,
    compression: 'zlib',
    extendedL2: false,
    l1Offset: 0x30000,
    l1Entries: 2,
    guestBytesPerTable: GIB / 2,
    refcountOffset: 0x10000,
    refcountBytes: 65536,
    hostEnd: 0x40000,
  }
  assert.equal(accepted(makeHead(), 0x40000), expected)
  const second = makeHead(() => {}, 2).subarray(0, 72)
  assert.equal(accepted(second, 0x40000), { ...expected, version: 2 })
})
header('takes a dirty image, snapshots, zstd and extended L2 entries', () => {
  assert.ok(accepted(makeHead(setFeature(0))))
  assert.ok(accepted(makeHead(setAt(60, 3))))
  const zstd = makeHead((head) => {
    setFeature(3)(head)
    head.writeUInt8(1, 104)
  })
  assert.is(accepted(zstd).compression, 'zstd')
  const extended = makeHead((head) => {
    setFeature(4)(head)
    head.writeUInt32BE(4, 36)
  })
  assert.is(accepted(extended).extendedL2, true)
  assert.is(accepted(extended).l1Entries, 4)
})
header('takes an empty disk, which needs no table', () => {
  const empty = makeHead((head) => {
    head.writeBigUInt64BE(0n, 24)
    head.writeUInt32BE(0, 36)
    head.writeBigUInt64BE(0n, 40)
  })
  assert.is(accepted(empty).l1Entries, 0)
})
header('refuses what cannot be written, with the reason', () => {
  const rows: readonly (readonly [(head: Buffer) => void, Qcow2Refusal])[] = [
    [setAt(0, 0), { why: 'not-qcow2' }],
    [setAt(4, 1), { why: 'unknown-version', version: 1 }],
    [setAt(4, 4), { why: 'unknown-version', version: 4 }],
    [setFeature(1), { why: 'marked-corrupt' }],
    [setFeature(2), { why: 'external-data-file' }],
    [setFeature(5), { why: 'unknown-features', bits: [5] }],
    [setFeature(63), { why: 'unknown-features', bits: [63] }],
    [setAt(12, 200), { why: 'backing-file' }],
    [setAt(32, 1), { why: 'encrypted', method: 1 }],
    [setAt(32, 2), { why: 'encrypted', method: 2 }],
    [setAt(20, 8), { why: 'cluster-size', bits: 8 }],
    [setAt(20, 22), { why: 'cluster-size', bits: 22 }],
    [setAt(20, 0xffffffff), { why: 'cluster-size', bits: 0xffffffff }],
    [(head) => head.writeUInt8(2, 104), { why: 'unknown-compression', type: 2 }],
    [setAt(24, 0x200000), { why: 'too-big', virtualBytes: 0x20000040000000n }],
  ]
  for (const [edit, refusal] of rows) assert.equal(refused(makeHead(edit)), refusal)
})
header('refuses subclusters of less than a sector', () => {
  const head = makeHead((bytes) => {
    setFeature(4)(bytes)
    setAt(20, 13)(bytes)
  })
  assert.equal(refused(head), { why: 'cluster-size', bits: 13 })
})
header('refuses a header that contradicts itself or its file', () => {
  const rows: readonly (readonly [(head: Buffer) => void, string])[] = [
    [setAt(100, 96), 'a header of 96 bytes'],
    [setAt(100, 65537), 'a header of 65537 bytes'],
    [setFeature(3), 'compression type and feature bit disagree'],
    [(head) => head.writeUInt8(1, 104), 'compression type and feature bit disagree'],
    [setAt(36, 1), 'an L1 table of 1 entries where 2 are needed'],
    [setAt(36, 4194305), 'an L1 table of 4194305 entries'],
    [setAt(44, 0x30008), 'the L1 table is not aligned'],
    [setAt(44, 0), 'the L1 table lies in the header'],
    [setAt(44, 0x40000), 'the L1 table lies outside the file'],
    [setAt(40, 0xffffffff), 'the L1 table lies outside the file'],
    [setAt(56, 129), 'a refcount table of 129 clusters'],
    [setAt(52, 0x10008), 'the refcount table is not aligned'],
    [setAt(52, 0), 'the refcount table lies in the header'],
    [setAt(52, 0x30000), 'the refcount table lies in the L1 table'],
    [setAt(56, 3), 'the refcount table lies in the L1 table'],
    [setAt(52, 0x40000), 'the refcount table lies outside the file'],
  ]
  for (const [edit, what] of rows) {
    assert.equal(refused(makeHead(edit), 0x40000), { why: 'damaged-header', what })
  }
})
header('takes an image without reference counts, which reading does not need', () => {
  const parsed = accepted(makeHead(setAt(56, 0)), 0x40000)
  assert.equal([parsed.refcountOffset, parsed.refcountBytes], [0x10000, 0])
})
header('refuses a header that is cut off, at every length', () => {
  for (let has = 0; has < 104; has += 1) {
    const refusal = refused(makeHead().subarray(0, has))
    assert.equal(
      refusal,
      has < 8 ? { why: 'not-qcow2' } : { why: 'header-too-short', needs: 104, has },
    )
  }
})
header('a refusal says how to fix it', () => {
  assert.is(
    renderQcow2Refusal({ why: 'backing-file' }),
    'it holds only the changes to a backing file; flatten it first: qemu-img convert -O qcow2 <image> <new image>',
  )
  assert.match(renderQcow2Refusal({ why: 'unknown-features', bits: [5, 9] }), /bits 5, 9\)/)
  assert.match(renderQcow2Refusal({ why: 'encrypted', method: 2 }), /LUKS/)
  assert.match(renderQcow2Refusal({ why: 'encrypted', method: 7 }), /method 7/)
})
header('any bytes are accepted within bounds or refused with words', () => {
  const edits = fc.array(fc.tuple(fc.nat(111), fc.nat(255)), { maxLength: 12 })
  fc.assert(
    fc.property(
      edits,
      fc.option(fc.nat(2 ** 31 - 1)),
      fc.nat(112),
      (changes, fileBytes, length) => {
        const head = makeHead((bytes) =>
          changes.forEach(([at, value]) => bytes.writeUInt8(value, at)),
        )
        const parsed = parseQcow2Header(head.subarray(0, length), fileBytes)
        if (!parsed.ok) return renderQcow2Refusal(parsed.refusal).length > 0
        const { virtualBytes, l1Entries, clusterBits, guestBytesPerTable } = parsed.value
        return (
          Number.isSafeInteger(virtualBytes) &&
          l1Entries * 8 <= 32 * 2 ** 20 &&
          clusterBits >= 9 &&
          clusterBits <= 21 &&
          l1Entries * guestBytesPerTable >= virtualBytes
        )
      },
    ),
    { numRuns: 3000 },
  )
})
header.run()
