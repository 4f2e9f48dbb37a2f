/** Walking through cpio archives in pieces of any length. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderNewc, type Entry } from '#build/initrd/newc.ts'
import { createNewcWalker } from '#fleet/boot/rules/boot-set.ts'

const test = suite('newc walker')
const file = (name: string, length: number): Entry => ({
  kind: 'file',
  name,
  mode: 0o644,
  bytes: Buffer.alloc(length, 0x30),
})
const ARCHIVE = renderNewc([file('one', 5), file('a/longer/name', 1001), file('none', 0)], 0)

function walk(bytes: Buffer, wanted: string, pieceBytes = bytes.length) {
  const walker = createNewcWalker(wanted)
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const step = walker.push(bytes.subarray(at, at + pieceBytes))
    if (step.kind === 'rest') return { kind: 'rest', at: at + step.at }
    if (step.kind !== 'more') return { kind: step.kind }
  }
  return { kind: walker.isAtEnd() ? 'end' : 'cut-off' }
}

test('finds names in any archive, in pieces of any length', () => {
  const two = Buffer.concat([ARCHIVE, Buffer.alloc(512), renderNewc([file('./two', 70)], 0)])
  for (let bytes = 1; bytes < 200; bytes += 7) {
    for (const name of ['one', 'a/longer/name', 'none', 'two']) {
      assert.equal(walk(two, name, bytes), { kind: 'found' })
    }
    assert.equal(walk(two, 'name', bytes), { kind: 'end' })
  }
})
test('says where something else begins', () => {
  const both = Buffer.concat([ARCHIVE, Buffer.from([0x1f, 0x8b, 8])])
  for (const bytes of [1, 64, both.length]) {
    assert.equal(walk(both, 'two', bytes), { kind: 'rest', at: ARCHIVE.length })
  }
  assert.equal(walk(Buffer.from([0x28, 0xb5]), 'two'), { kind: 'rest', at: 0 })
})
test('what is cut off or no archive proves nothing', () => {
  for (let bytes = 0; bytes < ARCHIVE.length - 512; bytes += 13) {
    assert.equal(walk(ARCHIVE.subarray(0, bytes), 'two'), { kind: 'cut-off' }, `${bytes}`)
  }
  assert.equal(walk(Buffer.alloc(4096), 'two'), { kind: 'cut-off' })
  assert.equal(walk(Buffer.from('0'.repeat(300)), 'two'), { kind: 'broken' })
  const long = Buffer.from(ARCHIVE)
  long.write('7FFFFFFF', 94, 'latin1')
  assert.equal(walk(long, 'two'), { kind: 'broken' })
})
test('any bytes end in one of these', () => {
  const piece = fc.oneof(
    fc.constant(ARCHIVE),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc.nat(ARCHIVE.length).map((bytes) => ARCHIVE.subarray(0, bytes)),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 5 }), fc.integer({ min: 1, max: 999 }), (all, by) => {
      const bytes = Buffer.concat(all)
      const [whole, inPieces] = [walk(bytes, 'two'), walk(bytes, 'two', by)]
      assert.equal(inPieces, whole)
    }),
  )
})
test.run()
