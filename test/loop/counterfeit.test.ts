/** A disk that is smaller than it says: what lies behind its real size is stored in its front. */
import { open } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createFlasher } from '#engine/flash/flasher.ts'
import { WHOLE_DISK } from '#engine/flash/rules/flash.ts'
import { createFaultyDisk, scripted } from '#test/support/disk/faulty-disk.ts'
import { createImageFile } from '#test/support/disk/first-boot-image.ts'
import { assertBlank } from '#test/support/disk/writer.ts'

const MIB = 2 ** 20
const REAL = 32
/** Without reading back, the marks alone show it. */
const VERIFIES = ['data', 'none'] as const
const test = suite('a counterfeit disk')

/** Says that it has so many MiB, and begins anew behind REAL. */
function createCounterfeit(megabytes: number) {
  const wrap = `set -- "$1" "$2" "$3" $(($4 % ${REAL * MIB}))`
  const scripts = { pread: wrap, pwrite: wrap, zero: wrap, trim: wrap }
  return createFaultyDisk({ nbdkit: scripted(megabytes, scripts) })
}

async function flash(image: string, target: string, options: Partial<typeof WHOLE_DISK> = {}) {
  const { signal } = new AbortController()
  const targets = [{ path: target }]
  const order = { image, format: null, targets, options: { ...WHOLE_DISK, ...options } }
  const [outcome] = await createFlasher({ env: process.env }).flash(order, { signal, onEvent() {} })
  assert.ok(outcome?.kind === 'failed' && outcome.code === 'verify-failed', JSON.stringify(outcome))
  assert.match(outcome.reason, /does not hold what was written/)
  assert.match(outcome.hint ?? '', /smaller than it says/)
}

test('does not get an image whose data comes to lie on its zeros', async () => {
  await using image = await createImageFile([{ megabytes: 36 }])
  {
    await using file = await open(image.path, 'r+')
    for (const at of [2, REAL + 5]) await file.write(Buffer.alloc(MIB, at), 0, MIB, at * MIB)
  }
  for (const verify of VERIFIES) {
    await using disk = await createCounterfeit(48)
    await flash(image.path, disk.device, { verify })
    await assertBlank(disk.device)
  }
})

test('is not grown into', async () => {
  const ext4 = { megabytes: 16, mkfs: ['mkfs.ext4', '-q'] }
  await using image = await createImageFile([ext4])
  for (const verify of VERIFIES) {
    await using disk = await createCounterfeit(80)
    await flash(image.path, disk.device, { grow: true, verify })
    await assertBlank(disk.device)
  }
})

test.run()
