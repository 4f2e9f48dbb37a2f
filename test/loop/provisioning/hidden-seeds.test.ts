/** What would keep cloud-init from reading a seed, or a seed from being written: overridden, or refused in time. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createFlasher } from '#engine/flash/flasher.ts'
import { WHOLE_DISK, type FlashOrder } from '#engine/flash/rules/flash.ts'
import { createImageFile } from '#test/support/disk/first-boot-image.ts'
import {
  createFlashedDisk,
  makeFolders,
  withMounted,
  type Part,
} from '#test/support/disk/flashed-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { catchFault, createFixture, readSeed } from '#test/support/disk/provisioning-fixture.ts'
import { makeStale, readDisk } from '#test/support/disk/writer.ts'

const run = $({ quiet: true, verbose: false })
const test = suite('a seed that would not be read')

/** A root with a cloud-init that is configured so. */
const rootWith = (files: Readonly<Record<string, string>>, mkfs = ['mkfs.ext4', '-q']): Part => ({
  megabytes: 16,
  mkfs,
  async fill(root) {
    await makeFolders('etc/cloud/cloud.cfg.d')(root)
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await writeFile(join(root, path), text)
    }
  },
})

const INSTALLED = { 'etc/cloud/cloud.cfg.d/90-installer.cfg': 'datasource_list: [None]\n' }
const OWN_FILE = 'etc/cloud/cloud.cfg.d/99-flasher.cfg'

const readOwn = (root: string) => readFile(join(root, OWN_FILE), 'utf8')

test('a file of ours makes cloud-init read it, and the output names that file', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([rootWith(INSTALLED), rootWith({})])
  const notes: string[] = []
  const warn = (words: string) => void notes.push(words)
  await fixture.provisioner.apply(fixture.cloudInit, disk.device, { warn })
  await fixture.assertLeftAsFound(disk)
  assert.match(
    await withMounted(disk.part(1), readOwn, 'ro'),
    /^datasource_list: \[NoCloud, None\]$/m,
  )
  assert.is((await readSeed(disk.part(1))).userData, '#cloud-config\npassword: secret\n')
  assert.match(notes.join(), /datasource_list in \/etc\/cloud\/cloud.cfg.d\/90-installer.cfg/)
})

test('is refused where that would not help', async () => {
  const refused: readonly (readonly [string, string, RegExp])[] = [
    ['etc/cloud/ds-identify.cfg', 'policy: disabled\n', /policy .* switches cloud-init off/],
    ['var/lib/cloud/instance/manual-clean', '', /trust the data source/],
    [
      'etc/cloud/cloud.cfg',
      'datasource:\n  NoCloud:\n    user-data: x\n    meta-data: {}\n',
      /user-data of its own/,
    ],
  ]
  for (const [path, text, words] of refused) {
    await using fixture = await createFixture()
    await using disk = await createFlashedDisk([rootWith({ [path]: text })])
    const fault = await catchFault(fixture.provisioner.apply(fixture.cloudInit, disk.device))
    assert.is(fault.code, 'provision-failed')
    assert.match(fault.message, words)
    await fixture.assertLeftAsFound(disk)
  }
})

const CIDATA: Part = { megabytes: 4, mkfs: ['mkfs.vfat', '-n', 'CIDATA'] }
/** Hashes of 16 MiB. */
const HASHES: Part = {
  megabytes: 4,
  mkfs: [
    'sh',
    '-c',
    `printf 'verity\\0\\0' | dd of="$0" conv=notrunc status=none
    printf '\\020' | dd of="$0" bs=1 seek=65 conv=notrunc status=none
    printf '\\020' | dd of="$0" bs=1 seek=73 conv=notrunc status=none`,
  ],
}
/** A file system, and hashes in what is left of its partition. */
const HASHED = rootWith({}, [
  'sh',
  '-c',
  `mkfs.ext4 -q "$0" 8M && printf 'verity\\0\\0' | dd of="$0" bs=1M seek=8 conv=notrunc status=none`,
])

test('is refused before the first byte where the image can be read there', async () => {
  await using fixture = await createFixture()
  const cases: readonly (readonly [readonly Part[], Partial<FlashOrder['options']>, RegExp])[] = [
    [[rootWith({}), CIDATA], {}, /user-data cannot be written: .* labelled CIDATA/],
    [[rootWith({}), HASHES], {}, /user-data cannot be written: partition 1 is protected by dm-ver/],
    [[HASHED], {}, /partition 1 is protected by dm-verity/],
    [[HASHED], { grow: true }, /cannot be grown: .* protected by dm-verity/],
  ]
  for (const [parts, options, words] of cases) {
    await using image = await createImageFile(parts)
    await using disk = await createLoop({ megabytes: 40 })
    const before = await makeStale(disk.device)
    const order: FlashOrder = {
      image: image.path,
      format: null,
      targets: [{ path: disk.device }],
      options: { ...WHOLE_DISK, ...options },
      ...(options.grow === true ? {} : { provisioning: fixture.cloudInit }),
    }
    const flasher = createFlasher({ env: fixture.env })
    const { signal } = new AbortController()
    const [outcome] = await flasher.flash(order, { signal, onEvent() {} })
    assert.ok(
      outcome?.kind === 'failed' && outcome.code === 'plan-refused',
      JSON.stringify(outcome),
    )
    assert.match(outcome.reason, words)
    assert.ok((await readDisk(disk.device)).equals(before))
  }
})

test('is refused before the first byte where nothing can be mounted, and so is a growth', async () => {
  await using fixture = await createFixture()
  await using image = await createImageFile([rootWith({})])
  await using disk = await createLoop({ megabytes: 40 })
  const before = await makeStale(disk.device)
  const flasher = createFlasher({ env: { ...fixture.env, TMPDIR: fixture.at('nowhere') } })
  const { signal } = new AbortController()
  const base = { image: image.path, format: null, targets: [{ path: disk.device }] }
  for (const order of [
    { ...base, options: WHOLE_DISK, provisioning: fixture.cloudInit },
    { ...base, options: { ...WHOLE_DISK, grow: true } },
  ]) {
    const [outcome] = await flasher.flash(order, { signal, onEvent() {} })
    assert.ok(
      outcome?.kind === 'failed' && outcome.code === 'plan-refused',
      JSON.stringify(outcome),
    )
    assert.match(outcome.reason, /no mount point can be made in .*nowhere/)
    assert.ok((await readDisk(disk.device)).equals(before))
  }
})

test('is refused where cloud-init would ignore the text', async () => {
  await using fixture = await createFixture()
  await writeFile(fixture.at('user-data'), 'users: []\n')
  const fault = await catchFault(fixture.provisioner.check(fixture.cloudInit))
  assert.is(fault.code, 'input-invalid')
  assert.match(fault.message, /has to be #cloud-config/)
  await run`rm ${fixture.at('user-data')}`
})

test.run()
