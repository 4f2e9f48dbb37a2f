/** What of a disk is read whole because it is no partition, and tables that cannot be relied on. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposable, open, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planAreas } from '#engine/capture/rules/areas.ts'

const test = suite('areas of a disk')
const MIB = 1 << 20
const SIZE = 200 * MIB

/** The first MiB of a disk with the table that sfdisk makes of these lines. */
async function makeHead(lines: string): Promise<Buffer> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-areas-'))
  const path = join(folder.path, 'disk')
  await writeFile(path, '')
  await truncate(path, SIZE)
  if (lines !== '') execFileSync('sfdisk', ['--quiet', path], { input: lines })
  await using file = await open(path)
  const head = Buffer.alloc(MIB)
  await file.read(head, 0, MIB, 0)
  return head
}

const NO_END = Buffer.alloc(512)
/** What blkid says where the table is all that there is. */
const alone = (head: Buffer) => ({
  type: null,
  table: head.toString('latin1', 512, 520) === 'EFI PART' ? 'gpt' : 'dos',
})

function areasOf(head: Buffer, { sizeBytes = SIZE, end = NO_END, contents = alone(head) } = {}) {
  const planned = planAreas({ head, end, sizeBytes, sectorBytes: 512, contents })
  return planned.ok ? planned.value : null
}

const plan = (head: Buffer, options: Parameters<typeof areasOf>[1] = {}) =>
  areasOf(head, options)?.map(({ number, offset, bytes }) => [number, offset / MIB, bytes / MIB]) ??
  null

test('partitions, small gaps whole, and the ends of large ones', async () => {
  const head = await makeHead(
    'label: gpt\nstart=20480,size=20480\nstart=61440,size=20480\nstart=184320,size=20480\n',
  )
  assert.equal(plan(head), [
    [null, 0, 10],
    [1, 10, 10],
    [null, 20, 10],
    [2, 30, 10],
    [null, 40, 1],
    [null, 89, 1],
    [3, 90, 10],
    [null, 100, 1],
    [null, 199, 1],
  ])
})

test('what lies before the first partition is read whole, however large it is', async () => {
  const head = await makeHead('label: dos\nstart=204800,size=204800\n')
  assert.equal(plan(head), [
    [null, 0, 100],
    [1, 100, 100],
  ])
})

test('a disk without a table is one area', async () => {
  assert.equal(plan(await makeHead('')), [[0, 0, 200]])
})

test('a table that is damaged, hybrid, or goes beyond the disk is not relied on', async () => {
  const head = await makeHead('label: gpt\nstart=20480,size=20480\n')
  const damaged = Buffer.from(head)
  damaged[1024 + 33] = 0xff
  assert.is(plan(damaged), null)
  const hybrid = Buffer.from(head)
  hybrid[446 + 16 + 4] = 0x83
  assert.is(plan(hybrid), null)
  assert.is(plan(head, { sizeBytes: 15 * MIB }), null)
  const overlapping = await makeHead('label: dos\nstart=2048,size=8192\nstart=20480,size=2048\n')
  overlapping.writeUInt32LE(4096, 446 + 16 + 8)
  assert.is(plan(overlapping), null)
})

const rolesOf = (head: Buffer) =>
  areasOf(head)?.flatMap(({ number, role }) => (number === null ? [] : [role]))

test('the table says which partitions hold others, and which only boot loaders', async () => {
  for (const type of ['5', 'f', '85']) {
    const head = await makeHead(
      `label: dos\nstart=2048,size=2048,type=83\nstart=4096,size=20480,type=${type}\n`,
    )
    assert.equal(rolesOf(head), ['data', 'extended'], type)
  }
  const types = [
    '21686148-6449-6E6F-744E-656564454649',
    'E3C9E316-0B5C-4DB8-817D-F92DF00215AE',
    '9E1A2D38-C612-4316-AA26-8B49521E5A8B',
    '0FC63DAF-8483-4772-8E79-3D69D8477DE4',
  ]
  const lines = types.map((type, at) => `start=${2048 * (at + 1)},size=2048,type=${type}`)
  assert.equal(rolesOf(await makeHead(`label: gpt\n${lines.join('\n')}\n`)), [
    'boot-loader',
    'boot-loader',
    'boot-loader',
    'data',
  ])
})

test('an entry of type 0 that has a length is a partition, which holds anything', async () => {
  const head = await makeHead('label: dos\nstart=2048,size=2048\nstart=8192,size=20480\n')
  head[446 + 16 + 4] = 0
  assert.equal(rolesOf(head), ['data', 'other'])
})

test('a dynamic disk of Windows is read whole', async () => {
  const lines = ['dos\nstart=2048,size=20480,type=42', `gpt\nstart=2048,size=20480,type=${LDM}`]
  for (const line of lines) assert.is(plan(await makeHead(`label: ${line}\n`)), null)
})

const LDM = 'AF9B60A0-1431-4F62-BC68-3311714A69AD'

test('a table with something beside it is not relied on', async () => {
  const gpt = await makeHead('label: gpt\nstart=20480,size=20480\n')
  const dos = await makeHead('label: dos\nstart=20480,size=20480\n')
  for (const head of [gpt, dos]) {
    assert.is(plan(head, { contents: { type: 'iso9660', table: 'dos' } as never }), null)
    assert.is(plan(head, { contents: { type: null, table: 'mac' } }), null)
  }
  const end = Buffer.from(gpt.subarray(512, 1024))
  assert.is(plan(dos, { end }), null)
  assert.ok(plan(gpt, { end }))
  end[88] = (end[88] ?? 0) ^ 1
  assert.is(plan(gpt, { end }), null)
  const protective = Buffer.from(dos)
  protective[446 + 4] = 0xee
  assert.is(plan(protective), null)
  const withLength = Buffer.from(gpt)
  withLength[446 + 16 + 12] = 1
  assert.is(plan(withLength), null)
})

test('a backup of the table that lies in a gap is read', async () => {
  const head = await makeHead('label: gpt\nstart=20480,size=20480\n')
  const sizeBytes = 2 * SIZE
  const areas = areasOf(head, { sizeBytes })
  const backup = SIZE - 512
  assert.ok(areas?.some(({ offset, bytes }) => offset <= backup - 16_384 && offset + bytes >= SIZE))
})
test.run()
