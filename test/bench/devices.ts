/** The disks of the benchmark: a loop on ext4, the same throttled, and a loop in memory. */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx'

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

export async function openBenchDevice(
  kind: DeviceKind,
  folder: string,
  bytes: number,
): Promise<BenchDevice> {
  const $$ = $({ quiet: true })
  const at = await mkdtemp(join(kind === 'memory' ? tmpdir() : folder, 'flasher-bench-'))
  if (kind === 'memory') await $$`mount -t tmpfs -o size=${bytes + (64 << 20)} tmpfs ${at}`
  const backing = join(at, 'disk')
  await $$`truncate -s ${bytes} ${backing}`
  const directIo = kind === 'memory' ? 'off' : 'on'
  const node = (await $$`losetup --find --show --direct-io=${directIo} ${backing}`).stdout.trim()
  const group = kind === 'throttled' ? await throttle(node) : null
  return {
    kind,
    node,
    within: (script) => (group === null ? script : `echo $$ > ${group}/cgroup.procs; ${script}`),
    async refill(stale) {
      await $$`dd if=${stale} of=${node} bs=4M oflag=direct conv=fsync status=none`
    },
    async [Symbol.asyncDispose]() {
      await $$`losetup -d ${node}`
      if (group !== null) await rmdir(group).catch(() => undefined)
      if (kind === 'memory') await $$`umount ${at}`
      await rm(at, { recursive: true, force: true })
    },
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
