/** The disks of the benchmark: a loop on ext4, the same throttled, and a loop in memory. */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, rmdir, writeFile } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx'
import { endChildren } from './process-tree.ts'

export const DEVICES = ['fast', 'throttled', 'memory'] as const
export type DeviceKind = (typeof DEVICES)[number]

export interface BenchDevice extends AsyncDisposable {
  readonly kind: DeviceKind
  readonly node: string
  /** A command line that runs another one where this device is as slow as it should be. */
  within(script: string): string
  /** Fills the device with what an earlier owner left. */
  refill(stale: string): Promise<void>
}

export const THROTTLE_MIB = 200
const CGROUP = '/sys/fs/cgroup/blkio'

/** Those that are open, or being opened. */
const open = new Set<Promise<AsyncDisposable>>()

/** Notes a device that must be given back where a signal is the end. */
export function giveBackAtEnd(opening: Promise<AsyncDisposable>): void {
  open.add(opening)
}

/** `await using`: given back at the end, also where a signal is the end (see `endBySignals`). */
export async function openBenchDevice(
  kind: DeviceKind,
  folder: string,
  bytes: number,
): Promise<BenchDevice> {
  const opening = makeDevice(kind, folder, bytes)
  open.add(opening)
  return await opening
}

/** SIGINT and SIGTERM end what is being measured, give the devices back, and then end us. */
export function endBySignals(): void {
  let isEnding = false
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, async () => {
      if (isEnding) return
      isEnding = true
      endChildren(process.pid)
      for (const opening of open) {
        const device = await opening.catch(() => null)
        if (device !== null) await Promise.allSettled([device[Symbol.asyncDispose]()])
      }
      process.exit(128 + constants.signals[name])
    })
  }
}

async function makeDevice(kind: DeviceKind, folder: string, bytes: number): Promise<BenchDevice> {
  await using made = new AsyncDisposableStack()
  const $$ = $({ quiet: true })
  const at = await mkdtemp(join(kind === 'memory' ? tmpdir() : folder, 'flasher-bench-'))
  made.defer(() => rm(at, { recursive: true, force: true }))
  if (kind === 'memory') {
    await $$`mount -t tmpfs -o size=${bytes + (64 << 20)} tmpfs ${at}`
    made.defer(async () => void (await $$`umount ${at}`))
  }
  const backing = join(at, 'disk')
  // Fully allocated, as a disk is: holes in a sparse file are zeroed in another way.
  await $$`fallocate -l ${bytes} ${backing}`
  // Zeroing in place would count as so many bytes written, which no disk's command is as slow as.
  if (kind === 'throttled') await $$`truncate -s +1M ${backing}`
  const flags = [`--direct-io=${kind === 'memory' ? 'off' : 'on'}`, `--sizelimit=${bytes}`]
  const node = (await $$`losetup --find --show ${flags} ${backing}`).stdout.trim()
  made.defer(async () => void (await $$`losetup -d ${node}`))
  const group = kind === 'throttled' ? await throttle(node) : null
  if (group !== null) made.defer(() => rmdir(group).catch(() => undefined))
  const given = made.move()
  let giving: Promise<void> | null = null
  return {
    kind,
    node,
    within: (script) => (group === null ? script : `echo $$ > ${group}/cgroup.procs; ${script}`),
    async refill(stale) {
      await $$`dd if=${stale} of=${node} bs=4M oflag=direct conv=fsync status=none`
    },
    // Once, whoever asks first, and awaited by all.
    [Symbol.asyncDispose]: () => (giving ??= given.disposeAsync()),
  }
}

/** A control group in which this device takes and gives at most so many MiB a second. */
async function throttle(node: string): Promise<string> {
  if (!existsSync(CGROUP))
    throw new Error(`${CGROUP} is missing: no throttled device on this machine`)
  const group = join(CGROUP, `flasher-bench-${process.pid}`)
  await mkdir(group)
  const numbers = (await $({ quiet: true })`lsblk -dno MAJ:MIN ${node}`).stdout.trim()
  for (const what of ['read_bps_device', 'write_bps_device']) {
    await writeFile(
      join(group, `blkio.throttle.${what}`),
      `${numbers} ${THROTTLE_MIB * 1024 * 1024}`,
    )
  }
  return group
}
