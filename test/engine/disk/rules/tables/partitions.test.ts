/** Partitions as the first bytes of a disk list them, compared with what sfdisk made. */
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parsePartitions } from '#engine/disk/rules/tables/partitions.ts'

const test = suite('partitions')
const MIB = 2 ** 20

/** The first MiB of a disk with this table. */
function makeTable(script: string): Buffer {
  const path = join(tmpdir(), `flasher-table-${process.pid}-${crypto.randomUUID()}`)
  try {
    writeFileSync(path, '')
    truncateSync(path, 64 * MIB)
    execFileSync('sfdisk', ['--quiet', path], { input: script })
    return readFileSync(path).subarray(0, MIB)
  } finally {
    rmSync(path)
  }
}

test('a GPT: names, types, identities and places, also behind a gap in the numbers', () => {
  const head = makeTable(`label: gpt
1 : start=2048, size=2048, type=U, name="EFI-SYSTEM"
4 : start=8192, size=4096, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, uuid=6F0C5A3E-52D4-4B1C-9D58-3A7E0B9F4C21, name="root"
`)
  const parsed = parsePartitions(head, 512)
  assert.ok(parsed.ok)
  assert.is(parsed.value.length, 2)
  assert.is(parsed.value[0]?.type, 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b')
  assert.is(parsed.value[0]?.name, 'EFI-SYSTEM')
  assert.equal(parsed.value[1], {
    number: 4,
    name: 'root',
    uuid: '6f0c5a3e-52d4-4b1c-9d58-3a7e0b9f4c21',
    type: '4f68bce3-e8cd-4db1-96e7-fbcaf984b709',
    offset: 4 * MIB,
    bytes: 2 * MIB,
  })
})

test('an MBR: its four primary partitions', () => {
  const head = makeTable(`label: dos
label-id: 0xdeadbeef
start=63, size=100, type=c
start=2048, size=2048, type=83
`)
  assert.equal(parsePartitions(head, 512), {
    ok: true,
    value: [
      { number: 1, name: '', uuid: 'deadbeef-01', type: '0x0c', offset: 63 * 512, bytes: 51_200 },
      { number: 2, name: '', uuid: 'deadbeef-02', type: '0x83', offset: MIB, bytes: MIB },
    ],
  })
})

test('no table, and a damaged one', () => {
  assert.equal(parsePartitions(Buffer.alloc(MIB), 512), { ok: false, refusal: 'no-table' })
  assert.equal(parsePartitions(Buffer.alloc(100), 512), { ok: false, refusal: 'no-table' })
  const head = makeTable('label: gpt\nsize=1M\n')
  head.writeUInt8(1, 2 * 512 + 8)
  assert.equal(parsePartitions(head, 512), { ok: false, refusal: 'damaged-table' })
})

test.run()
