/** Lists the volumes of a disk that was just written, once the kernel shows them. */
import { access } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { listVolumes, PHYSICAL_VOLUME, type FilledVolume } from './rules/volume.ts'
import { probeContents } from './disk-contents.ts'
import { readLsblk } from './disks.ts'
import { activateGroups } from './logical-volumes.ts'
import type { Shell } from '#kit/host/shell.ts'
import { settleDevices } from './udev.ts'

export interface FlashedDisk extends AsyncDisposable {
  /** In lsblk's order; logical volumes are active until this is disposed of. */
  readonly volumes: readonly FilledVolume[]
  /** Why a volume must not be looked into, by its node. */
  readonly refused: ReadonlyMap<string, string>
}

const WAIT_MS = 5000
const PAUSE_MS = 100

/** Waits a few seconds for the partitions of a table. */
export async function openVolumes(
  shell: Shell,
  disk: string,
  signal?: AbortSignal,
): Promise<FlashedDisk> {
  const before = await wait(shell, disk, signal)
  const physical = before.filter(({ contents }) => contents.type === PHYSICAL_VOLUME)
  const nodes = physical.map(({ node }) => node)
  await using undo = new AsyncDisposableStack()
  const { refused } = undo.use(await activateGroups(shell, nodes))
  const volumes = physical.length === 0 ? before : await list(shell, disk)
  const held = undo.move()
  return { volumes, refused, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

async function list(shell: Shell, disk: string): Promise<readonly FilledVolume[]> {
  const filled: FilledVolume[] = []
  for (const volume of listVolumes(await readLsblk(shell, '--bytes', disk), disk)) {
    filled.push({ ...volume, contents: await probeContents(shell, volume.node) })
  }
  return filled
}

async function wait(shell: Shell, disk: string, signal: AbortSignal | undefined) {
  await settleDevices(shell)
  for (let waited = 0; ; waited += PAUSE_MS) {
    const volumes = await list(shell, disk)
    if ((await areReady(volumes)) || waited >= WAIT_MS) return volumes
    await pause(PAUSE_MS, undefined, signal === undefined ? {} : { signal })
  }
}

/** A partition table alone is still to be read. */
async function areReady(volumes: readonly FilledVolume[]): Promise<boolean> {
  const nodes = await Promise.allSettled(volumes.map(({ node }) => access(node)))
  if (nodes.some(({ status }) => status === 'rejected')) return false
  return volumes.every(({ kind, contents }) => kind !== 'disk' || contents.type !== null)
}
