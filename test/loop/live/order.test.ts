/** The live system of the earlier line, from the server's own script to the disk and back. */
import { copyFile, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createFlashedDisk, makeFolders } from '#test/support/disk/flashed-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { readSeed } from '#test/support/disk/provisioning-fixture.ts'
import { waitUntil } from '#test/support/waiting.ts'
import { createLiveLab, LIVE_MAC } from '#test/support/system/live-boot.ts'

const test = suite('a live system of the earlier line')
const IMAGE = 'lab #1.img'
const FLASH = { image: IMAGE, boot_policy: 'flash', provisioning_mode: 'none' }
const SEEDED = { ...FLASH, provisioning_mode: 'cloud-init' }
const SEED = '#cloud-config\npassword: hunter2\n'
const run = $({ quiet: true, verbose: false })

/** A lab whose image folder has a disk image with a cloud-init root. */
async function createLab() {
  const lab = await createLiveLab()
  await using disk = await createFlashedDisk([
    { megabytes: 16, mkfs: ['mkfs.ext4', '-q'], fill: makeFolders('etc/cloud') },
  ])
  await run`sync ${disk.backing}`
  await copyFile(disk.backing, join(lab.server.images, IMAGE))
  return lab
}

const listLeftovers = async () =>
  (await readdir(tmpdir())).filter((name) => name.startsWith('flasher-provision-'))

test('flash with cloud-init: streamed, seeded, reported, restarted', async () => {
  await using lab = await createLab()
  await using target = await createLoop({ megabytes: 32 })
  await lab.bind(SEEDED)
  await lab.keep('user-data', SEED)
  const before = await listLeftovers()
  const machine = await lab.boot({ disks: [target.device] })
  assert.is(await machine.start(), 0)
  assert.equal(machine.asked, [])
  assert.is(machine.counts.restarts, 1)

  await run`partx --update ${target.device}`
  const seed = await readSeed(`${target.device}p1`)
  assert.is(seed.userData, SEED)
  assert.match(seed.metaData, /^instance-id: flasher-/)
  const { last_flashed_at, boot_policy } = await lab.readMachine()
  assert.ok(last_flashed_at)
  assert.is(boot_policy, 'flash')
  const [last] = await lab.readRuns()
  assert.is(last.result, 'done')
  assert.is(last.verified, true)
  assert.is(last.image.name, IMAGE)
  assert.is(last.disk.path, target.device)
  assert.match(await machine.readStatus(), /flash complete; rebooting/)
  assert.equal(await listLeftovers(), before)
  for (const said of [machine.screen(), await machine.readStatus()]) {
    assert.not.match(said, 'hunter2')
    assert.not.match(said, /flasher\.token/)
  }
})

test('cijoe-online comes to the machine as none: its work begins on the server', async () => {
  await using lab = await createLab()
  await using target = await createLoop({ megabytes: 32 })
  await lab.bind({ ...FLASH, provisioning_mode: 'cijoe-online' })
  assert.match(await lab.readKernelArguments(), / flasher\.provisioning=none /)
  const machine = await lab.boot({ disks: [target.device] })
  await machine.start()
  assert.is(machine.counts.restarts, 1)
  assert.ok((await lab.readMachine()).last_flashed_at)
})

test('more than one suitable disk: nothing is written, a person is asked, the server knows why', async () => {
  await using lab = await createLab()
  await using one = await createLoop({ megabytes: 32 })
  await using other = await createLoop({ megabytes: 32 })
  await lab.bind(FLASH)
  const machine = await lab.boot({ disks: [one.device, other.device] })
  await machine.start()
  assert.is(machine.asked.length, 1)
  assert.equal(machine.asked[0]?.argv, ['--server', lab.url, '--mac', LIVE_MAC])
  assert.match(machine.asked[0]?.reason ?? '', /^2 disks can be flashed. Choose one: \/dev\/loop/)
  assert.is(machine.counts.restarts, 0)
  assert.is((await lab.readMachine()).last_flashed_at, null)
  const events = await lab.server.journal.list({ limit: 50 })
  assert.match(JSON.stringify(events), '2 disks can be flashed')
  // The order was tried: what is started again at this console is for the person there.
  await machine.start()
  assert.equal(machine.asked[1], { argv: ['--server', lab.url], reason: null })
})

test('provisioning that is impossible is found out before anything is written', async () => {
  await using lab = await createLab()
  await using target = await createLoop({ megabytes: 32 })
  const before = await run`sha256sum ${target.backing}`
  const expectRefused = async (reason: RegExp, machine: Awaited<ReturnType<typeof lab.boot>>) => {
    await machine.start()
    assert.equal(machine.asked[0]?.argv, ['--server', lab.url])
    assert.match(machine.asked[0]?.reason ?? '', reason)
    const shown = machine.asked[0]?.reason ?? ''
    assert.match(
      shown,
      /^[^]+\. Flashes from here are not provisioned, and the server is not notified/,
    )
    assert.is(shown.split('not notified').length, 2, shown)
    const [event] = await lab.server.journal.list({ kind: 'machine.flash_failed', limit: 1 })
    assert.not.match(JSON.stringify(event), 'not notified')
    assert.is((await run`sha256sum ${target.backing}`).stdout, before.stdout)
    assert.is((await lab.readMachine()).last_flashed_at, null)
  }
  const disks = [target.device]
  await lab.bind(SEEDED)
  await expectRefused(/user-data: HTTP 404: no user-data is kept/, await lab.boot({ disks }))

  await lab.keep('user-data', SEED)
  const line = await lab.readKernelArguments()
  const forged = line.replace(/flasher\.token=\S+/, 'flasher.token=x')
  await expectRefused(/user-data: HTTP 401/, await lab.boot({ disks }, forged))

  await lab.bind({ ...FLASH, provisioning_mode: 'cijoe' })
  await expectRefused(/^This live system has no cijoe/, await lab.boot({ disks }))
  await lab.keep('cijoe-workflow', 'doc: nothing\n')
  const pretended = await lab.boot({ disks, hasCijoe: true, env: { PATH: '/nonexistent' } })
  await expectRefused(/^The flash failed: cijoe is not installed/, pretended)
})

test('an image that is gone: the reason is on the screen and in the events', async () => {
  await using lab = await createLab()
  await using target = await createLoop({ megabytes: 32 })
  await lab.bind({ ...FLASH, image: 'gone.img' })
  const machine = await lab.boot({ disks: [target.device] })
  await machine.start()
  assert.equal(machine.asked[0]?.argv, ['--server', lab.url, '--mac', LIVE_MAC])
  assert.match(machine.asked[0]?.reason ?? '', /^The flash failed: .*404/)
  const [last] = await lab.readRuns()
  assert.is(last.result, 'failed')
  assert.match(last.reason, /404/)
})

test('only one console flashes, the others look on', async () => {
  await using lab = await createLab()
  await using target = await createLoop({ megabytes: 32 })
  await lab.bind(FLASH)
  const lookingOn = () => machine.screen().split('Press a key').length - 1
  const onRestart = () => waitUntil(async () => lookingOn() === 2, machine.screen)
  const machine = await lab.boot({ disks: [target.device], onRestart })
  const consoles = [machine.start(), machine.start(), machine.start()]
  await Promise.race(consoles)
  machine.stop()
  assert.equal(await Promise.all(consoles), [0, 0, 0])
  assert.is(machine.counts.restarts, 1)
  assert.equal(machine.asked, [])
  assert.is((await lab.readRuns()).length, 1)
})

test('tui: each console has the panes, with the machine that they report for', async () => {
  await using lab = await createLab()
  await lab.bind({ ...FLASH, boot_policy: 'tui' })
  const machine = await lab.boot({ disks: [] })
  await Promise.all([machine.start(), machine.start()])
  const opened = { argv: ['--server', lab.url, '--mac', LIVE_MAC], reason: null }
  assert.equal(machine.asked, [opened, opened])
})

test('a server that does not take the end: the person at the machine can send it again', async () => {
  await using lab = await createLab()
  await using target = await createLoop({ megabytes: 32 })
  await lab.bind(FLASH)
  const machine = await lab.boot({ disks: [target.device], onLook: lab.forgetMachine })
  await machine.start()
  assert.is(machine.counts.restarts, 0)
  const [{ argv, reason, unsent } = { argv: [], reason: null }] = machine.asked
  assert.equal(argv, ['--server', lab.url, '--mac', LIVE_MAC])
  assert.match(reason ?? '', /^The disk is flashed, but the server could not be notified: HTTP 404/)
  assert.match(unsent ?? '', /^HTTP 404/)
})

test.run()
