import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  activate,
  compareVersions,
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

test.run()
