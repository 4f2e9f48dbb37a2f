/** First-boot configurations: written before the disk can boot, or the disk never boots. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import type { FlashOutcome } from '../../../runtime/core/flash/outcome.ts'
import type { FirstBoot } from '../../../runtime/core/first-boot/seed.ts'
import { createFlasher } from '../../../runtime/services/flash/flasher.ts'
import { createRandom } from '../../support/collect.ts'
import { createFaultyDisk } from '../../support/disk/faulty-disk.ts'
import {
  CLOUD_PARTS,
  createImageFile,
  readPartFile,
  ROOT_OFFSET,
  SEED,
  SEED_FOLDER,
} from '../../support/disk/first-boot-image.ts'
import { makeFolders, type Part } from '../../support/disk/flashed-disk.ts'
import { createLoop } from '../../support/disk/loop.ts'
import { assertBlank, makeStale, readDisk, untilFree } from '../../support/disk/writer.ts'

const MIB = 2 ** 20
const flasher = createFlasher({ env: process.env })
const { signal } = new AbortController()

interface Flashed {
  readonly outcome: FlashOutcome
  readonly events: readonly string[]
}

async function flash(image: string, target: string, firstBoot: FirstBoot = SEED): Promise<Flashed> {
  const options = {
    verify: 'data',
    sha256: null,
    allowPartition: false,
    fixGpt: false,
    grow: false,
  } as const
  await using planned = await flasher.plan(
    { image, format: null, target, options, firstBoot },
    signal,
  )
  const events: string[] = []
  const onEvent = ({ event }: { readonly event: string }) => void events.push(event)
  return { outcome: await flasher.run(planned, { signal, onEvent }), events }
}

/** The loop devices on a device, which must not be left behind. */
async function listLoops(device: string): Promise<readonly string[]> {
  const { stdout } = await $({ quiet: true })`losetup --list --noheadings --output BACK-FILE`
  return stdout.split('\n').filter((line) => line.trim() === device)
}

/** A partition with one folder. */
const ext4 = (megabytes: number, name: string): Part => ({
  megabytes,
  mkfs: ['mkfs.ext4', '-q'],
  fill: makeFolders(name),
})

const test = suite('a first-boot configuration')

test('goes into the root file system, then the disk gets its ends', async () => {
  await using image = await createImageFile(CLOUD_PARTS)
  await using disk = await createLoop({ megabytes: 32 })
  await makeStale(disk.device)
  const { outcome, events } = await flash(image.path, disk.device)
  assert.is(outcome.kind, 'done')
  assert.equal(events.slice(-3), ['provisioning', 'synced', 'partprobed'])
  for (const [name, text] of Object.entries(SEED.cloudInit ?? {})) {
    assert.is(await readPartFile(disk.device, ROOT_OFFSET, `${SEED_FOLDER}/${name}`), text)
  }
  assert.equal(await listLoops(disk.device), [])
  const head = await readDisk(disk.device, 0, MIB)
  assert.is(head.toString('latin1', 512, 520), 'EFI PART')
})

test('goes where Fedora CoreOS and Flatcar read Ignition', async () => {
  const systems = [
    {
      parts: [{ megabytes: 4 }, ext4(16, 'ignition.firstboot'), ext4(8, 'etc')],
      names: ['EFI-SYSTEM', 'boot', 'root'],
      path: 'ignition/config.ign',
    },
    {
      parts: [{ megabytes: 4 }, ext4(16, 'x'), ext4(8, 'etc')],
      names: ['USR-A', 'OEM', 'ROOT'],
      path: 'config.ign',
    },
  ]
  for (const { parts, names, path } of systems) {
    await using image = await createImageFile(parts, names)
    await using disk = await createLoop({ megabytes: 40 })
    const { outcome } = await flash(image.path, disk.device)
    assert.is(outcome.kind, 'done')
    assert.is(await readPartFile(disk.device, ROOT_OFFSET, path), SEED.ignition)
  }
})

test('that has no place is refused before the first byte', async () => {
  await using image = await createImageFile(CLOUD_PARTS)
  // Of the very size of the image, whose root reaches into the last MiB then.
  await $({ quiet: true })`truncate -s 21M ${image.path}`
  await $({ quiet: true, nothrow: true })`sgdisk --move-second-header ${image.path}`
  await using disk = await createLoop({ megabytes: 21 })
  const before = await makeStale(disk.device)
  const cases: readonly (readonly [FirstBoot, RegExp])[] = [
    [SEED, /partition 2 reaches into the last MiB of the disk/],
    [{ ...SEED, cloudInit: null, reason: 'its text is for Ignition' }, /for Ignition/],
  ]
  for (const [firstBoot, words] of cases) {
    const { outcome, events } = await flash(image.path, disk.device, firstBoot)
    assert.equal(events, ['started'])
    assert.ok(outcome.kind === 'failed' && outcome.code === 'plan-refused')
    assert.match(outcome.kind === 'failed' ? outcome.reason : '', words)
    assert.ok((await readDisk(disk.device)).equals(before))
  }
})

test('that finds no cloud-init leaves a disk that cannot boot', async () => {
  await using image = await createImageFile([
    { megabytes: 4 },
    { megabytes: 16, mkfs: ['mkfs.ext4', '-q'], fill: makeFolders('etc') },
  ])
  await using disk = await createLoop({ megabytes: 32 })
  const { outcome } = await flash(image.path, disk.device)
  assert.ok(outcome.kind === 'failed' && outcome.code === 'provision-failed')
  assert.match(outcome.kind === 'failed' ? outcome.leaves : '', /without a partition table/)
  await assertBlank(disk.device)
  assert.equal(await listLoops(disk.device), [])
})

const FLASH = fileURLToPath(new URL('../../support/disk/first-boot-flash.ts', import.meta.url))
/** Slow enough that the ends take a share of the time. */
const SLOW = ['--filter=delay', 'memory', '24M', 'wdelay=8ms', 'rdelay=2ms', 'delay-trim=8ms']

/** Kills a flash so long after it began to provision; null: it is left alone. */
async function flashAndKill(image: string, device: string, milliseconds: number | null) {
  const child = spawn(process.execPath, [FLASH, image, device], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  let lasted = 0
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === 'provisioning') {
      lasted = performance.now()
      if (milliseconds !== null) {
        await sleep(milliseconds)
        child.kill('SIGKILL')
      }
    }
    if (line === 'synced') lasted = performance.now() - lasted
  }
  await ended
  await untilFree(device)
  for (let tries = 0; (await listLoops(device)).length > 0; tries += 1) {
    assert.ok(tries < 500, 'a loop device was left behind')
    await sleep(20)
  }
  return lasted
}

test('killed at 40 moments between the write and the end: nothing boots without it', async () => {
  await using image = await createImageFile(CLOUD_PARTS)
  await using disk = await createFaultyDisk({ nbdkit: SLOW })
  const { device } = disk
  const lasts = await flashAndKill(image.path, device, null)
  const random = createRandom(21)
  const seen = { blank: 0, provisioned: 0 }
  for (let n = 0; n < 40; n += 1) {
    await flashAndKill(image.path, device, random() * 1.1 * lasts)
    const head = await readDisk(device, 0, 4096)
    if (head.every((byte) => byte === 0)) {
      seen.blank += 1
      continue
    }
    seen.provisioned += 1
    for (const [name, text] of Object.entries(SEED.cloudInit ?? {})) {
      const path = `${SEED_FOLDER}/${name}`
      assert.is(await readPartFile(device, ROOT_OFFSET, path), text, `${path} after kill ${n}`)
    }
  }
  assert.ok(seen.blank > 0, 'no kill came before the end')
  console.log(`  40 kills: ${seen.blank} blank, ${seen.provisioned} provisioned`)
})

test.run()
