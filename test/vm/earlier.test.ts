/** The earlier line as a whole: PXE, the live system, the image and its seed, and a Debian that has applied it. */
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { $ } from 'zx'
import { type Lab, LAB_MAC, LAB_PASSWORD, startLab } from '#test/support/server/lab.ts'
import { createSystemAccount, hashOf } from '#test/support/system/system-account.ts'
import { findBuildObstacle, openLiveTrio } from '#test/support/vm/built-images.ts'
import { openCloudImage } from '#test/support/vm/cloud-image.ts'
import { PATIENCE, waitForEnd } from '#test/support/vm/pxe-flash.ts'
import type { Qemu } from '#test/support/vm/qemu.ts'

const EARLIER_IMAGE = 'debian-cloud.img.zst'
const DISK_BYTES = 2 * 2 ** 30

const MachineSchema = z.object({
  boot_policy: z.string(),
  last_flashed_at: z.string().nullable(),
})
const RunsSchema = z.object({
  runs: z.array(z.object({ result: z.string().nullable(), verified: z.boolean().nullable() })),
})

interface EarlierLab extends AsyncDisposable {
  readonly lab: Lab
  readMachine(): Promise<z.infer<typeof MachineSchema>>
  /** The newest first. */
  readRuns(): Promise<z.infer<typeof RunsSchema>['runs']>
  put(machine: object): Promise<void>
  keep(file: string, text: string): Promise<void>
  /** A boot of the machine; it ends when it is restarted. */
  start(): Promise<Qemu>
}

const runQuiet = $({ quiet: true, verbose: false })

/** Needs what the builder needs, and what the Debian image needs. The disk has an earlier owner's data. */
async function startEarlierLab(): Promise<EarlierLab> {
  await using undo = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'flasher-earlier-lab-'))
  undo.defer(() => rm(folder, { recursive: true, force: true }))
  const images = join(folder, 'images')
  await mkdir(images)
  await runQuiet`zstd -q -3 ${await openCloudImage()} -o ${join(images, EARLIER_IMAGE)}`
  const account = undo.use(await createSystemAccount({ shadow: hashOf(LAB_PASSWORD) }))
  const lab = undo.use(
    await startLab({
      boot: Object.values(await openLiveTrio()),
      prefix: account.prefix,
      env: { FLASHER_LINE: 'earlier', FLASHER_IMAGE_ROOT: images },
    }),
  )
  const disk = join(lab.folder, 'disk')
  await using file = await open(disk, 'wx')
  await file.truncate(DISK_BYTES)
  await file.write(randomBytes(2 ** 20), 0, 2 ** 20, 0)
  const machine = `/machines/${LAB_MAC}`
  const held = undo.move()
  return {
    lab,
    readMachine: async () => MachineSchema.parse(await lab.ask(machine)),
    readRuns: async () => RunsSchema.parse(await lab.ask(`${machine}/runs`)).runs,
    put: async (body) => void (await lab.ask(machine, body, 'PUT')),
    keep: async (name, text) => void (await lab.ask(`${machine}/provision/${name}`, text, 'PUT')),
    start: () => lab.start('bios-rom', { disk }),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const test = suite('the earlier line')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const SEED = `#cloud-config
hostname: lab-box-7
runcmd:
  - [sh, -c, 'echo "the seed of $(hostname) is applied" >/dev/console']
`
const FLASH = { image: EARLIER_IMAGE, provisioning_mode: 'cloud-init', hostname: 'lab-box-7' }

run('policy flash with cloud-init: flashed, seeded, recorded, and up', async () => {
  await using earlier = await startEarlierLab()
  await earlier.put({ ...FLASH, boot_policy: 'flash' })
  await earlier.keep('user-data', SEED)
  {
    await using machine = await earlier.start()
    await machine.waitFor(/flasher: digest verified/, PATIENCE)
    await machine.waitFor(/flash complete; rebooting/, PATIENCE)
    await waitForEnd(machine)
  }
  const flashed = await earlier.readMachine()
  assert.ok(flashed.last_flashed_at)
  assert.is(flashed.boot_policy, 'flash')
  assert.equal(await earlier.readRuns(), [{ result: 'done', verified: true }])

  await earlier.put({ ...FLASH, boot_policy: 'local' })
  await using machine = await earlier.start()
  await machine.waitFor(/boots its own disk/, PATIENCE)
  await machine.waitFor(/the seed of lab-box-7 is applied/, PATIENCE)
})

test.run()
