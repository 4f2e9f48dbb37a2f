import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Entry, renderNewc } from '#build/initrd/newc.ts'
import {
  activate,
  compareVersions,
  createNewcWalker,
  NO_RECORD,
  parseSetFile,
  prune,
  setFileName,
} from '#fleet/boot/rules/boot-set.ts'

const test = suite('boot sets')

test('versions in their order', () => {
  const ordered = ['0.9', '1.0.0-rc1', '1.0.0-rc2', '1.0.0', '1.2.0', '1.10.0', '10.0.0']
  assert.equal(ordered.toReversed().toSorted(compareVersions), ordered)
  assert.is(compareVersions('1.0', '1.0'), 0)
})

test('names of set files, there and back', () => {
  const name = 'flasher-netboot-pc-arm64-v1.2.3-rc1.sha256'
  const file = parseSetFile(name)
  assert.equal(file, { arch: 'arm64', version: '1.2.3-rc1', part: 'checksums' })
  assert.is(file === null ? null : setFileName(file), name)
  for (const other of [
    'flasher-netboot-pc-x86_64-v.initrd',
    'flasher-netboot-pc-x86_64-v1/../x.initrd',
    'flasher-netboot-pc-riscv-v1.initrd',
    'flasher-netboot-pc-x86_64-v1.0.iso',
    `flasher-netboot-pc-x86_64-v${'1'.repeat(99)}.initrd`,
  ]) {
    assert.is(parseSetFile(other), null, other)
  }
})

test('what is replaced comes first among the earlier ones, and the oldest go', () => {
  let record = NO_RECORD
  for (const version of ['1.0', '2.0', '1.0', '3.0', '4.0']) {
    record = activate(record, record.active, { x86_64: version })
  }
  assert.equal(record.earlier.x86_64, ['3.0', '1.0', '2.0'])
  const pruned = prune(record, 1)
  assert.equal(pruned.record.earlier.x86_64, ['3.0'])
  assert.equal(
    pruned.removed.map(({ version }) => version),
    ['1.0', '2.0'],
  )
  assert.is(pruned.record.active.arm64, null)
})

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
