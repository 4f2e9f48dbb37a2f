/** `--provision cloud-init`: a disk that boots has its seed, whatever its table, and however the flash ended. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SEED_FOLDER } from '#engine/flash/rules/provisioning.ts'
import { readPartFile } from '#test/support/disk/first-boot-image.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import {
  createFixture,
  makeSeededImage,
  PLAIN_ROOT,
  USER_DATA,
  WHOLE_ROOT,
  type RootLayout,
  type SeededImage,
} from '#test/support/disk/provisioning-fixture.ts'
import { listLoopsOn } from '#test/support/disk/growing-images.ts'
import { assertBlank, isFree, readDisk } from '#test/support/disk/writer.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

const MIB = 2 ** 20
const test = suite('provisioning before the ends')

async function flash({ path, flags }: SeededImage, device: string, ...more: readonly string[]) {
  const argv = ['--image', path, '--target', device, '--yes', '--progress', 'ndjson', ...flags]
  const { code, stdout, stderr } = await runFlasher(['flash', ...argv, ...more])
  const events = [...stdout.matchAll(/"event": ?"(\w+)"/g)].flatMap(([, event]) => event ?? [])
  return { code, stderr, events: events.filter((event) => event !== 'writing') }
}

const ORDER = ['started', 'synced', 'partprobed', 'provisioning', 'done']

interface Case {
  readonly layout: RootLayout
  /** The size of the disk; absent: it is larger than the image. */
  readonly megabytes?: number
  readonly flags?: readonly string[]
}

const LOGICAL: RootLayout = {
  table: [
    'label: dos',
    'start=2048,size=2048,type=c',
    'start=4096,type=5',
    'start=6144,size=4096,type=83',
    'start=12288,size=40960,type=83',
  ],
  megabytes: 28,
  offset: 12_288 * 512,
  bytes: 20 * MIB,
}
/** Its root begins in the first MiB and ends in the last, as on old disks. */
const WHOLE: RootLayout = {
  table: ['label: dos', 'start=63,type=83'],
  megabytes: 24,
  offset: 63 * 512,
  bytes: 24 * MIB - 63 * 512,
}
const CASES: Readonly<Record<string, Case>> = {
  'in a GPT': { layout: PLAIN_ROOT },
  unverified: { layout: PLAIN_ROOT, flags: ['--no-verify'] },
  'in a GPT whose backup moves': { layout: PLAIN_ROOT, flags: ['--fix-gpt'] },
  'in a partition that grows': { layout: PLAIN_ROOT, flags: ['--grow'] },
  'in a logical partition': { layout: LOGICAL },
  'in all of an MBR disk, from sector 63 on': { layout: WHOLE, megabytes: 24 },
  'in all of a GPT disk': { layout: WHOLE_ROOT, megabytes: 24 },
  'on a bare disk, after its ends': {
    layout: { table: [], megabytes: 24, offset: 0, bytes: 24 * MIB },
  },
}

for (const [where, { layout, megabytes = 64, flags = [] }] of Object.entries(CASES)) {
  test(`the seed is written ${where}`, async () => {
    await using image = await makeSeededImage(layout)
    await using disk = await createLoop({ megabytes })
    const { device } = disk
    const { code, stderr, events } = await flash(image, device, ...flags)
    assert.is(code, 0, stderr)
    assert.equal(events, ORDER)
    const path = `${SEED_FOLDER}/user-data`
    assert.is(await readPartFile(device, layout.offset, path), USER_DATA)
    assert.equal(await listLoopsOn(device), [])
    assert.ok(await isFree(device))
    // The table that the kernel reads is the image's.
    const head = await readDisk(device, 0, 2 * 512)
    if (layout.table[0] === 'label: gpt') assert.is(head.toString('latin1', 512, 520), 'EFI PART')
  })
}

for (const [where, { layout }] of Object.entries({
  'in a table': { layout: { ...PLAIN_ROOT, folder: 'etc' } },
  'on a bare disk': {
    layout: { table: [], megabytes: 24, offset: 0, bytes: 24 * MIB, folder: 'etc' },
  },
})) {
  test(`an image without cloud-init ${where} is left without its ends`, async () => {
    await using image = await makeSeededImage(layout)
    await using disk = await createLoop({ megabytes: 64 })
    const { code, stderr, events } = await flash(image, disk.device)
    assert.is(code, 1)
    assert.match(stderr, 'no cloud-init (/etc/cloud)')
    assert.match(stderr, 'was left without a partition table')
    assert.equal(events, [...ORDER.slice(0, -1), 'failed'])
    await assertBlank(disk.device)
    assert.equal(await listLoopsOn(disk.device), [])
  })
}

test('a workflow that fails leaves the disk without its ends', async () => {
  await using image = await makeSeededImage(PLAIN_ROOT)
  await using fixture = await createFixture()
  await using disk = await createLoop({ megabytes: 64 })
  const { device } = disk
  for (const [script, code] of [
    ['exit 7', 1],
    ['exit 0', 0],
  ] as const) {
    await fixture.installCijoe(script)
    const argv = ['--image', image.path, '--target', device, '--yes', '--provision', 'cijoe']
    const ended = await runFlasher(
      ['flash', ...argv, '--cijoe-workflow', fixture.at('flow.yaml')],
      {
        env: fixture.env,
      },
    )
    assert.is(ended.code, code, ended.stderr)
    assert.match(ended.stderr, /^\[partprobed\]\n\[provisioning\] cijoe\n/m)
    if (code === 0)
      assert.ok((await readDisk(device, 512, 512)).toString('latin1').startsWith('EFI PART'))
    else {
      assert.match(ended.stderr, /cijoe workflow exited 7[^]*was left without a partition table/)
      await assertBlank(device)
    }
    assert.ok(await isFree(device))
  }
})

test.run()
