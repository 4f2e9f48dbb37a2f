/** A machine that becomes a Debian by the network alone: discovered, bound, flashed, booted. */
import { randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { openIpxe, openTrio } from './built-images.ts'
import { openDebianImage } from '../disk/debian-image.ts'
import {
  DISK_SERIAL,
  LAB_MAC,
  startLab,
  type Lab,
  type LabOptions,
  type MachineOptions,
  type Way,
} from '../server/lab.ts'
import { waitUntil } from '../waiting.ts'
import type { Qemu } from './qemu.ts'

/** Seconds, ten times what a free machine needs. */
export const PATIENCE = 600
const DISK_BYTES = 2 ** 30

const MachineSchema = z.object({
  boot_mode: z.string(),
  capture: z.object({ result: z.string().nullable(), reason: z.string().nullable() }).nullable(),
  known_disks: z.array(z.object({ serial: z.string().nullable(), size: z.string() })).nullable(),
  last_flashed_at: z.string().nullable(),
  secure_boot: z.boolean().nullable().optional(),
  bmc_address: z.string().nullable().optional(),
})
const ImagesSchema = z.array(z.object({ name: z.string(), ref: z.string() }))
const RunsSchema = z.object({
  runs: z.array(
    z.object({
      id: z.string(),
      mode: z.string(),
      phase: z.string(),
      result: z.string().nullable(),
      bytes_written: z.int(),
      total_bytes: z.int().nullable(),
      verified: z.boolean().nullable(),
      image: z.object({ name: z.string(), src: z.string().nullable() }).nullable(),
      disk: z.object({ serial: z.string().nullable() }).nullable(),
    }),
  ),
})
export type SeenRun = z.infer<typeof RunsSchema>['runs'][number]

/** The part of a lab that a machine needs. */
export type MachineLab = Pick<Lab, 'folder' | 'ask' | 'start' | 'said'> & AsyncDisposable

export interface PxeLab<L extends MachineLab = Lab> extends AsyncDisposable {
  readonly lab: L
  /** The machine's disk, as a file. */
  readonly disk: string
  readMachine(): Promise<z.infer<typeof MachineSchema>>
  /** The newest first. */
  readRuns(): Promise<readonly SeenRun[]>
  /** A boot of the machine; it ends when it is restarted. */
  start(way: Way, options?: MachineOptions): Promise<Qemu>
  /** The operator binds the Debian image to the machine, to be flashed once. */
  bind(): Promise<void>
}

/** Server and cache with a built release and the Debian image; a machine whose disk has an earlier owner's data. */
export const startPxeLab = async (): Promise<PxeLab> =>
  openPxeLab({
    ipxe: await openIpxe(),
    images: [await (await openDebianImage()).file('img.zst')],
  })

/** `images`: the first is the one that is bound. */
export async function openPxeLab(
  options: Omit<LabOptions, 'boot'> & { readonly images: readonly [string] },
): Promise<PxeLab> {
  return openMachine(await startBootLab(options), basename(options.images[0]))
}

/** A lab with a built release, and no machine yet. */
export async function startBootLab(options: Omit<LabOptions, 'boot'>): Promise<Lab> {
  const { kernel, initrd, squashfs, checksums } = await openTrio(options.arch)
  return await startLab({ ...options, boot: [kernel, initrd, squashfs, checksums] })
}

interface OwnOptions extends Pick<MachineOptions, 'mac'> {
  /** Absent: one with an earlier owner's data is made. */
  readonly disk?: string
}

/** A machine of this lab, and the name of the image that is bound to it. */
export async function openMachine<L extends MachineLab>(
  lab: L,
  image: string,
  { mac = LAB_MAC, disk: given }: OwnOptions = {},
): Promise<PxeLab<L>> {
  const disk = given ?? (await makeUsedDisk(join(lab.folder, 'disk')))
  const machine = `/machines/${mac}`
  return {
    lab,
    disk,
    readMachine: async () => MachineSchema.parse(await lab.ask(machine)),
    readRuns: async () => RunsSchema.parse(await lab.ask(`${machine}/runs`)).runs,
    start: (way, more) => lab.start(way, { mac, disk, ...more }),
    async bind() {
      let bty_image_ref: string | undefined
      await waitUntil(
        async () => {
          const images = ImagesSchema.parse(await lab.ask('/images'))
          bty_image_ref = images.find(({ name }) => name === image)?.ref
          return bty_image_ref !== undefined
        },
        () => 'the image is not offered',
      )
      const body = { boot_mode: 'flasher-flash-once', target_disk_serial: DISK_SERIAL }
      await lab.ask(machine, { ...body, bty_image_ref }, 'PUT')
    },
    [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose](),
  }
}

async function makeUsedDisk(path: string): Promise<string> {
  await using file = await open(path, 'wx')
  await file.truncate(DISK_BYTES)
  await file.write(randomBytes(2 ** 20), 0, 2 ** 20, 0)
  return path
}

/** Boots an unknown machine until the server knows its disks and it has restarted. */
export async function discover(
  pxe: PxeLab<MachineLab>,
  way: Way,
  options?: MachineOptions,
): Promise<void> {
  await using machine = await pxe.start(way, options)
  await machine.waitFor(/flasher: digest verified/, PATIENCE)
  await waitFor(pxe, async () => ((await pxe.readMachine()).known_disks?.length ?? 0) > 0)
  await waitForEnd(machine)
}

/** Boots it until it has flashed its disk and restarted. */
export async function flash(
  pxe: PxeLab<MachineLab>,
  way: Way,
  options?: MachineOptions,
): Promise<void> {
  await using machine = await pxe.start(way, options)
  await waitForEnd(machine)
}

/** Rejects when the machine goes on for too long; the serial log is kept then and named. */
export async function waitForEnd(machine: Qemu, seconds: number = PATIENCE): Promise<void> {
  const isOver = machine.ended.then(() => true)
  if (await Promise.race([isOver, sleep(seconds * 1000, false, { ref: false })])) return
  throw new Error(`the machine did not restart; the serial log is ${machine.keepLog()}`)
}

export const waitFor = (pxe: PxeLab<MachineLab>, isSo: () => Promise<boolean>): Promise<void> =>
  waitUntil(isSo, () => pxe.lab.said(), PATIENCE * 1000)
