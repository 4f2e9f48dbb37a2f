import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderNewc } from '#build/initrd/newc.ts'

const test = suite('newc')
const EPOCH = 0x68e77a00

const up = (at: number) => (at + 3) & ~3

/** Reads an archive as the format's description has it: 6 + 13 × 8 characters, name, data. */
function read(archive: Buffer) {
  const found: { name: string; fields: readonly number[]; data: string }[] = []
  for (let at = 0; ;) {
    assert.is(archive.toString('latin1', at, at + 6), '070701')
    const fields = Array.from({ length: 13 }, (_, index) =>
      Number.parseInt(archive.toString('latin1', at + 6 + index * 8, at + 14 + index * 8), 16),
    )
    const [size = 0, nameSize = 0] = [fields[6], fields[11]]
    const name = archive.toString('utf8', at + 110, at + 109 + nameSize)
    const data = up(at + 110 + nameSize)
    found.push({ name, fields, data: archive.toString('utf8', data, data + size) })
    at = up(data + size)
    if (name === 'TRAILER!!!') return { found, end: at }
  }
}

const ENTRIES = [
  { kind: 'folder', name: 'dev' },
  { kind: 'device', name: 'dev/console', mode: 0o600, major: 5, minor: 1 },
  { kind: 'file', name: 'init', mode: 0o755, bytes: Buffer.from('#!/bin/sh\n') },
  { kind: 'link', name: 'bin/sh', target: 'busybox' },
  { kind: 'file', name: 'empty', mode: 0o644, bytes: Buffer.alloc(0) },
] as const

test('each entry has its type, owner, time and content', () => {
  const { found } = read(renderNewc(ENTRIES, EPOCH))
  assert.equal(
    found.map(({ name, data }) => [name, data]),
    [
      ['dev', ''],
      ['dev/console', ''],
      ['init', '#!/bin/sh\n'],
      ['bin/sh', 'busybox'],
      ['empty', ''],
      ['TRAILER!!!', ''],
    ],
  )
  const modes = found.map(({ fields }) => fields[1]?.toString(8))
  assert.equal(modes, ['40755', '20600', '100755', '120777', '100644', '0'])
  assert.equal(found[1]?.fields.slice(9, 11), [5, 1], 'the console is device 5:1')
  assert.equal(
    found.map(({ fields }) => fields[0]),
    [1, 2, 3, 4, 5, 0],
    'inodes are counted',
  )
  assert.ok(found.slice(0, -1).every(({ fields }) => fields[2] === 0 && fields[3] === 0))
  assert.ok(found.slice(0, -1).every(({ fields }) => fields[5] === EPOCH))
})

test('everything begins at a multiple of 4, the archive ends at one of 512', () => {
  for (let length = 0; length < 9; length += 1) {
    const bytes = Buffer.alloc(length, 'x')
    const archive = renderNewc([{ kind: 'file', name: 'x'.repeat(length + 1), mode: 0, bytes }], 0)
    assert.is(archive.length % 512, 0)
    const { found, end } = read(archive)
    assert.is(found[0]?.data, 'x'.repeat(length))
    assert.ok(archive.subarray(end).every((byte) => byte === 0))
  }
})

test('the same entries make the same bytes', () => {
  assert.ok(renderNewc(ENTRIES, EPOCH).equals(renderNewc(ENTRIES, EPOCH)))
})

test.run()
