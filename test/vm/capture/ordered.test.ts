/** The server has one machine captured over the network, and another flashed with what an operator accepted. */
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { installDebian, readDigest, visitDebian } from '#test/support/capture/installed-debian.ts'
import { DISK_SERIAL, LAB_MAC } from '#test/support/server/lab.ts'
import { findBuildObstacle, openIpxe } from '#test/support/vm/built-images.ts'
import {
  flash,
  openMachine,
  PATIENCE,
  startBootLab,
  waitForEnd,
  type PxeLab,
} from '#test/support/vm/pxe-flash.ts'

const test = suite('PXE, captured')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds: an emulated processor compresses the whole system, perhaps beside other work. */
const CAPTURE_PATIENCE = 3 * PATIENCE

const IMAGE = 'golden.img.zst'
const OTHER_MAC = '52:54:00:12:34:57'
/** The size of the disk that is flashed; the one that is captured has 640 MiB. */
const LARGER_BYTES = 2 ** 30

const CapturesSchema = z.object({
  captures: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      status: z.string(),
      warnings: z.array(z.string()),
      source: z.object({ mac: z.string(), generalized: z.boolean() }),
    }),
  ),
})
const NamesSchema = z.array(z.object({ name: z.string() }))

/** Boots it by the network, from where it is sent to its own disk, up to its shutdown. */
async function visit(pxe: PxeLab) {
  await using machine = await pxe.start('uefi-pxe')
  await machine.waitFor(/boots its own disk/, PATIENCE)
  return await visitDebian(machine)
}

/** Orders a capture, and boots the machine until it has ended. */
async function capture(pxe: PxeLab) {
  const order = { name: IMAGE, disk_serial: DISK_SERIAL, generalize: true }
  await pxe.lab.ask(`/machines/${LAB_MAC}/capture`, order)
  await using machine = await pxe.start('uefi-pxe')
  await waitForEnd(machine, CAPTURE_PATIENCE)
  const [last] = await pxe.readRuns()
  assert.equal([last?.mode, last?.result], ['capture', 'done'])
  assert.equal((await pxe.readMachine()).capture, { result: 'done', reason: null })
}

/** As an operator: it waits, is not offered, and is accepted. */
async function acceptImage({ lab }: PxeLab) {
  const { captures } = CapturesSchema.parse(await lab.askCache('/captures'))
  const [{ id, ...waiting } = { id: '' }] = captures
  assert.equal(waiting, {
    name: IMAGE,
    status: 'waiting',
    warnings: [],
    source: { mac: LAB_MAC, generalized: true },
  })
  await lab.ask('/admin/cache/refresh', {})
  assert.equal(NamesSchema.parse(await lab.ask('/images')), [])
  await lab.askCache(`/captures/${id}/accept`, {})
  await lab.ask('/admin/cache/refresh', {})
}

run('captured, accepted, flashed onto a larger disk; both machines boot their disks', async () => {
  await using lab = await startBootLab({ ipxe: await openIpxe() })
  const disk = join(lab.folder, 'installed')
  await installDebian(disk)
  const one = await openMachine(lab, IMAGE, { disk })
  await lab.ask(`/machines/${LAB_MAC}`, { boot_mode: 'ipxe-exit' }, 'PUT')
  const installed = await visit(one)
  const digest = await readDigest(disk)
  await capture(one)
  assert.is(await readDigest(disk), digest)
  await acceptImage(one)
  // It is over: the machine boots its disk again, and is the one it was.
  assert.equal(await visit(one), installed)

  const two = await openMachine(lab, IMAGE, { mac: OTHER_MAC })
  await two.bind()
  const grow = { action: 'grow', macs: [OTHER_MAC], parameters: { grow: true } }
  await lab.ask('/machines/bulk', grow)
  await flash(two, 'uefi-pxe')
  const [last] = await two.readRuns()
  assert.equal([last?.mode, last?.result, last?.verified], ['flash', 'done', true])
  const flashed = await visit(two)
  assert.is.not(flashed.machineId, installed.machineId)
  assert.is(flashed.keyBytes, 0)
  assert.ok(flashed.rootBytes > 0.9 * LARGER_BYTES, `${flashed.rootBytes} bytes`)
})

test.run()
