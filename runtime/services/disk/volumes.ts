/** Lists the volumes of a disk that was just written, once the kernel shows them. */
import { access } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../core/foundation/fault.ts'
import { LSBLK_COLUMNS, LSBLK_COLUMNS_OLD, parseLsblk } from '../../core/disk/lsblk.ts'
import {
  listVolumes,
  PHYSICAL_VOLUME,
  type FilledVolume,
  type Volume,
} from '../../core/disk/volume.ts'
import { probeContents } from './disk-contents.ts'
import type { LogicalVolumes } from './logical-volumes.ts'
import type { Shell } from '../host/shell.ts'

export interface FlashedDisk extends AsyncDisposable {
  /** In lsblk's order; logical volumes are switched on until this is disposed of. */
  readonly volumes: readonly FilledVolume[]
  /** Volumes that nobody may look into, by node, and why. */
  readonly refused: ReadonlyMap<string, string>
}

interface Volumes {
  /** Waits a few seconds for the partitions of a disk that has a partition table. */
  open(disk: string, signal?: AbortSignal): Promise<FlashedDisk>
}

const WAIT_MS = 5000
const PAUSE_MS = 100

export function createVolumes({
  shell,
  logicalVolumes,
}: {
  readonly shell: Shell
  readonly logicalVolumes: LogicalVolumes
}): Volumes {
  async function fill(volume: Volume): Promise<FilledVolume> {
    return { ...volume, contents: await probeContents(shell, volume.node) }
  }

  async function look(disk: string): Promise<readonly Volume[]> {
    const ask = (columns: string) =>
      shell.run(['lsblk', '--json', '--bytes', '--output', columns, disk])
    const today = await ask(LSBLK_COLUMNS)
    const { stdout, stderr } = today.exitCode === 0 ? today : await ask(LSBLK_COLUMNS_OLD)
    const nodes = parseLsblk(stdout)
    if (!nodes.ok)
      throw new Fault('tool-failed', `lsblk ${disk}: ${stderr.trim() || nodes.refusal}`)
    return listVolumes(nodes.value, disk)
  }

  const list = async (disk: string) => {
    const filled: FilledVolume[] = []
    for (const volume of await look(disk)) filled.push(await fill(volume))
    return filled
  }

  async function wait(disk: string, signal: AbortSignal | undefined) {
    if (await shell.has('udevadm')) await shell.run(['udevadm', 'settle', '--timeout=10'])
    for (let waited = 0; ; waited += PAUSE_MS) {
      const volumes = await list(disk)
      if ((await areReady(volumes)) || waited >= WAIT_MS) return volumes
      await pause(PAUSE_MS, undefined, signal === undefined ? {} : { signal })
    }
  }

  return {
    async open(disk, signal) {
      const before = await wait(disk, signal)
      const physical = before.filter(({ contents }) => contents.type === PHYSICAL_VOLUME)
      await using undo = new AsyncDisposableStack()
      const groups = undo.use(await logicalVolumes.activate(physical.map(({ node }) => node)))
      const volumes = physical.length === 0 ? before : await list(disk)
      const held = undo.move()
      return { volumes, refused: groups.refused, [Symbol.asyncDispose]: () => held.disposeAsync() }
    },
  }
}

/** Partitions, or a file system on the disk itself; a partition table alone is still to be read. */
async function areReady(volumes: readonly FilledVolume[]): Promise<boolean> {
  const nodes = await Promise.allSettled(volumes.map(({ node }) => access(node)))
  if (nodes.some(({ status }) => status === 'rejected')) return false
  return volumes.every(({ kind, contents }) => kind !== 'disk' || contents.type !== null)
}
