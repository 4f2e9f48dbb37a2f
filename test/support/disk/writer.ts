/** Flashes as the program does: opens, looks, plans and executes, with the real parts. */
import { constants, readFileSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import {
  type FlashEvent,
  type FlashOptions,
  type FlashPlan,
  planFlash,
  renderRefusal,
} from '#engine/flash/rules/flash-plan.ts'
import { parseBackupBytes } from '#engine/disk/rules/partition-tables.ts'
import { detectFormat } from '#engine/image/rules/format.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { createDecoders } from '#engine/image/formats.ts'
import { createSlot } from '#engine/disk/device.ts'
import { createDisks } from '#engine/disk/disks.ts'
import { createImages } from '#engine/image/images.ts'
import { createShell } from '#kit/host/shell.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { ownStream } from '#engine/flash/image-stream.ts'
import type { BeforeEnds } from '#engine/flash/seed-writer.ts'
import { writeImage } from '#engine/flash/flasher.ts'
import { makeNoise, writeGpt } from './disk-images.ts'

const shell = createShell({ env: process.env })
const disks = createDisks({ shell })
const images = createImages({ shell })
const decoders = createDecoders({ shell })

export interface FlashOrder extends Partial<FlashOptions> {
  readonly source: Source
  readonly device: string
  readonly format?: ImageFormat
  readonly signal?: AbortSignal
  readonly mirrors?: readonly Source[]
  readonly beforeEnds?: BeforeEnds
  /** The listener gets each event as it comes. */
  readonly onEvent?: (event: FlashEvent) => void
  /** Changes the plan between the check and the execution, as the environment might. */
  readonly change?: (plan: FlashPlan) => FlashPlan
}

/** The plan, or a Fault `plan-refused` with the refusals in words. */
async function plan(order: FlashOrder): Promise<FlashPlan> {
  const { source, device, format = detectFormat(source.fileName) } = order
  const options = {
    verify: 'data',
    sha256: null,
    allowPartition: false,
    fixGpt: false,
    grow: false,
  } as const
  const image = await images.probe(source, format)
  const target = await disks.probe(device, image.path)
  const planned = planFlash(image, target, { ...options, ...order })
  if (planned.ok) return order.change?.(planned.value) ?? planned.value
  throw new Fault('plan-refused', planned.refusal.map((why) => renderRefusal(why)).join('; '))
}

/** Plans and flashes, and tells each event as it comes. */
export async function* execute(order: FlashOrder): AsyncGenerator<FlashEvent> {
  const { source, signal = new AbortController().signal, mirrors = [], beforeEnds = null } = order
  const planned = await plan(order)
  const changes = ownStream(decoders, planned, source, mirrors)
  yield* writeImage({ shell, env: process.env, disks }, planned, changes, {
    signal,
    beforeEnds,
  })
}

/** The events of a flash that succeeds; a failed one throws. */
export async function flash(order: FlashOrder): Promise<readonly FlashEvent[]> {
  const events: FlashEvent[] = []
  for await (const event of execute(order)) {
    events.push(event)
    order.onEvent?.(event)
  }
  return events
}

/** What a disk holds, past every cache. */
export async function readDisk(device: string, from = 0, bytes = sizeOf(device) - from) {
  const file = await open(device, constants.O_RDONLY | constants.O_DIRECT)
  try {
    const into = createSlot(bytes)
    let at = 0
    while (at < bytes) {
      const { bytesRead } = await file.read(into, at, Math.min(bytes - at, 4 << 20), from + at)
      if (bytesRead === 0) throw new Error(`${device} ends at ${from + at}`)
      at += bytesRead
    }
    return into
  } finally {
    await file.close()
  }
}

/** The kernel counts in units of 512 bytes, whatever the sectors are. */
export function sizeOf(device: string): number {
  const { rdev } = statSync(device)
  const [major, minor] = [(rdev >> 8) & 0xfff, (rdev & 0xff) | ((rdev >> 12) & 0xfff00)]
  return 512 * Number(readFileSync(`/sys/dev/block/${major}:${minor}/size`, 'utf8'))
}

/** Covers a disk with noise and another system's partition table; returns what it holds then. */
export async function makeStale(device: string, sectorBytes = 512): Promise<Buffer> {
  const stale = makeNoise(sizeOf(device), 99)
  if (stale.length >= 128 * 1024) writeGpt(stale, sectorBytes, 98)
  const file = await open(device, 'r+')
  try {
    await file.write(stale, 0, stale.length, 0)
    await file.sync()
  } finally {
    await file.close()
  }
  return stale
}

/** What must lie on a disk after a flash: the image, zeros to the sector's end, what was there, zeros in the last MiB. */
export function expectedDisk(stale: Buffer, image: Buffer, sectorBytes = 512): Buffer {
  const expected = withoutEnds(stale)
  expected.fill(0, image.length, Math.ceil(image.length / sectorBytes) * sectorBytes)
  image.copy(expected)
  return expected
}

/** The same disk with its first and its last MiB cleared. */
function withoutEnds(stale: Buffer): Buffer {
  const cleared = Buffer.from(stale)
  cleared.fill(0, 0, Math.min(cleared.length, 1 << 20))
  cleared.fill(0, Math.max(0, cleared.length - (1 << 20)))
  return cleared
}

/** Whether nobody holds the disk. */
export async function isFree(device: string): Promise<boolean> {
  try {
    await using _ = await open(device, constants.O_RDWR | constants.O_EXCL)
    return true
  } catch {
    return false
  }
}

export async function untilFree(device: string): Promise<void> {
  for (let tries = 0; !(await isFree(device)); tries += 1) {
    assert.ok(tries < 3000, `${device} is still held`)
    await sleep(20)
  }
}

export function assertSame(found: Buffer, expected: Buffer, what = 'disk'): void {
  assert.is(found.length, expected.length)
  if (found.equals(expected)) return
  let at = 0
  while (found[at] === expected[at]) at += 1
  assert.unreachable(`${what} differs from byte ${at} on (of ${found.length})`)
}

/** The disk cannot boot and shows nothing: no boot code, no table at either end. */
export async function assertBlank(device: string, headBytes = 1 << 20): Promise<void> {
  const disk = await readDisk(device)
  const head = disk.subarray(0, headBytes)
  assert.ok(
    head.every((byte) => byte === 0),
    `${device}: the first ${headBytes} bytes are not cleared`,
  )
  assert.is(parseBackupBytes(disk.subarray(-8192)), 0, `${device}: a backup table is left`)
}
