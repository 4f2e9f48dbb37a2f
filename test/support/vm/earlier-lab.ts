/** A server of the earlier line on the lab's wire, with one live system, one image, and a machine with a disk. */
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { $ } from 'zx'
import { LAB_MAC, LAB_PASSWORD, startLab, type Lab } from '../server/lab.ts'
import { createSystemAccount, hashOf } from '../system/system-account.ts'
import { openLiveTrio } from './built-images.ts'
import { openCloudImage } from './cloud-image.ts'
import type { Qemu } from './qemu.ts'

export const EARLIER_IMAGE = 'debian-cloud.img.zst'
const DISK_BYTES = 2 * 2 ** 30

const MachineSchema = z.object({
  boot_policy: z.string(),
  last_flashed_at: z.string().nullable(),
})
const RunsSchema = z.object({
  runs: z.array(z.object({ result: z.string().nullable(), verified: z.boolean().nullable() })),
})

export interface EarlierLab extends AsyncDisposable {
  readonly lab: Lab
  readMachine(): Promise<z.infer<typeof MachineSchema>>
  /** The newest first. */
  readRuns(): Promise<z.infer<typeof RunsSchema>['runs']>
  put(machine: object): Promise<void>
  keep(file: string, text: string): Promise<void>
  /** A boot of the machine; it ends when it is restarted. */
  start(): Promise<Qemu>
}

const run = $({ quiet: true, verbose: false })

/** Needs what the builder needs, and what the Debian image needs. The disk has an earlier owner's data. */
export async function startEarlierLab(): Promise<EarlierLab> {
  await using undo = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'flasher-earlier-lab-'))
  undo.defer(() => rm(folder, { recursive: true, force: true }))
  const images = join(folder, 'images')
  await mkdir(images)
  await run`zstd -q -3 ${await openCloudImage()} -o ${join(images, EARLIER_IMAGE)}`
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
