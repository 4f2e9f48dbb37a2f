/** First-boot configurations: written before the disk can boot, or the disk never boots. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import type { FirstBoot } from '#engine/first-boot/rules/seed.ts'
import { WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { createFaultyDisk, scripted, type FaultyDisk } from '#test/support/disk/faulty-disk.ts'
import {
  CLOUD_PARTS,
  createImageFile,
  readPartFile,
  ROOT_OFFSET,
  SEED,
  SEED_FOLDER,
} from '#test/support/disk/first-boot-image.ts'
import { makeFolders, type Part } from '#test/support/disk/flashed-disk.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { assertBlank, makeStale, readDisk, untilFree } from '#test/support/disk/writer.ts'

const MIB = 2 ** 20
const flasher = createFlasher({ env: process.env })
const { signal } = new AbortController()

interface Flashed {
  readonly outcome: FlashOutcome
  readonly events: readonly string[]
}

async function flash(
  image: string,
  target: string,
  firstBoot: FirstBoot = SEED,
  onProvisioning = () => {},
): Promise<Flashed> {
  const order = { image, format: null, targets: [{ path: target }], options: WHOLE_DISK, firstBoot }
  const events: string[] = []
  const onEvent = ({ event }: { readonly event: string }) => {
    events.push(event)
    if (event === 'provisioning') onProvisioning()
  }
  const [outcome] = await flasher.flash(order, { signal, onEvent })
  if (outcome === undefined) throw new Error('there is no outcome')
  return { outcome, events }
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
  // The image gets the very size of the disk; its root reaches into the last MiB then.
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
    assert.equal(events, [])
    assert.ok(outcome.kind === 'failed' && outcome.code === 'plan-refused')
    assert.match(outcome.kind === 'failed' ? outcome.reason : '', words)
    assert.ok((await readDisk(disk.device)).equals(before))
  }
})

/** cloud-init would read it instead. */
const CIDATA: Part = {
  megabytes: 4,
  mkfs: [
    'sh',
    '-c',
    `printf "CIDATA     FAT16" | dd of="$0" bs=1 seek=43 conv=notrunc status=none`,
  ],
}

test('that cloud-init would not read is refused before the first byte', async () => {
  await using image = await createImageFile([CIDATA, ...CLOUD_PARTS.slice(1)])
  await using disk = await createLoop({ megabytes: 32 })
  const before = await makeStale(disk.device)
  const { outcome, events } = await flash(image.path, disk.device)
  assert.equal(events, [])
  assert.ok(outcome.kind === 'failed' && outcome.code === 'plan-refused')
  assert.match(outcome.kind === 'failed' ? outcome.reason : '', /partition labelled CIDATA/)
  assert.ok((await readDisk(disk.device)).equals(before))
})

test('that cloud-init would not read, seen too late, leaves a disk that cannot boot', async () => {
  // Too far away in an image that is fetched.
  await using file = await createImageFile([{ megabytes: 17 }, CIDATA, ...CLOUD_PARTS.slice(1)])
  const bytes = await readFile(file.path)
  await using server = await startHostileServer((request, response) => {
    response.writeHead(200, { 'content-length': bytes.length })
    response.end(request.method === 'HEAD' ? undefined : bytes)
  })
  await using disk = await createLoop({ megabytes: 48 })
  const { outcome } = await flash(`${server.origin}/debian.img`, disk.device)
  assert.ok(outcome.kind === 'failed' && outcome.code === 'provision-failed')
  assert.match(outcome.kind === 'failed' ? outcome.reason : '', /partition labelled CIDATA/)
  await assertBlank(disk.device)
})

test('that the disk does not hold leaves a disk that cannot boot', async () => {
  await using image = await createImageFile(CLOUD_PARTS)
  const pwrite = `if [ -e "{}/flag" ]; then
    LC_ALL=C sed s/web-1/web-2/ | dd of="{}/data" bs=1M seek="$4" oflag=seek_bytes conv=notrunc status=none
    exit 0
  fi`
  await using disk = await createFaultyDisk({ nbdkit: scripted(24, { pwrite }) })
  const { outcome } = await flash(image.path, disk.device, SEED, () => disk.setFlag(true))
  assert.ok(outcome.kind === 'failed' && outcome.code === 'verify-failed', JSON.stringify(outcome))
  const reason = outcome.kind === 'failed' ? outcome.reason : ''
  assert.match(reason, `does not return what was written, in /${SEED_FOLDER}/user-data`)
  await assertBlank(disk.device)
  assert.equal(await listLoops(disk.device), [])
})

test('that finds no cloud-init leaves a disk that cannot boot', async () => {
  await using image = await createImageFile([
    { megabytes: 4 },
    { megabytes: 16, mkfs: ['mkfs.ext4', '-q'], fill: makeFolders('etc') },
  ])
  await using disk = await createLoop({ megabytes: 32 })
  const { outcome } = await flash(image.path, disk.device)
  assert.ok(outcome.kind === 'failed' && outcome.code === 'provision-failed')
  assert.match(outcome.kind === 'failed' ? outcome.leaves : '', /has no partition table/)
  await assertBlank(disk.device)
  assert.equal(await listLoops(disk.device), [])
})

const FLASH = fileURLToPath(new URL('../../support/disk/first-boot-flash.ts', import.meta.url))
/** Where `{}/gate` holds a number, the disk does so many requests more and then waits until it is gone. */
const GATE = `if [ -e "{}/gate" ]; then
  echo >>"{}/count"
  if [ "$(wc -l <"{}/count")" -ge "$(cat "{}/gate")" ]; then
    touch "{}/reached"
    while [ -e "{}/gate" ]; do sleep 0.02; done
  fi
fi`
const NEVER = 1_000_000

/** Flashes; the flasher is killed while the disk is at request `at` since the configuration began. */
async function flashAndKill(image: string, { device, folder }: FaultyDisk, at: number) {
  const files = ['gate', 'count', 'reached'].map((name) => join(folder, name))
  const [gate = '', count = '', reached = ''] = files
  const child = spawn(process.execPath, [FLASH, image, device, gate, String(at)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = once(child, 'close')
  while (child.exitCode === null && !existsSync(reached)) await sleep(10)
  child.kill('SIGKILL')
  const requests = (await readFile(count, 'utf8').catch(() => '')).length
  await rm(gate, { force: true })
  await ended
  await untilFree(device)
  // The disk is held until all of them are marked to go, and the kernel takes a moment to do it.
  for (let tries = 0; (await listLoops(device)).length > 0; tries += 1) {
    assert.ok(tries < 15_000, 'a loop device was left behind')
    await sleep(20)
  }
  for (const file of files) await rm(file, { force: true })
  return requests
}

test(`killed at ${KILLS} moments between the write and the end: nothing boots without it`, async () => {
  await using image = await createImageFile(CLOUD_PARTS)
  await using disk = await createFaultyDisk({
    nbdkit: scripted(24, { pwrite: GATE, flush: GATE, trim: GATE, zero: GATE }),
  })
  const { device } = disk
  const all = await flashAndKill(image.path, disk, NEVER)
  const random = createSeededRandom(41)
  const seen = { blank: 0, provisioned: 0 }
  for (let n = 1; n <= KILLS; n += 1) {
    // The last two come after the end, and the others each in its share of the requests.
    const at = Math.max(1, Math.ceil(((n - random()) / (KILLS - 2)) * all))
    await flashAndKill(image.path, disk, n < KILLS - 1 ? at : NEVER)
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
  assert.ok(seen.blank > 0 && seen.provisioned > 1, JSON.stringify(seen))
  console.log(`  ${KILLS} kills: ${seen.blank} blank, ${seen.provisioned} provisioned`)
})

test.run()
