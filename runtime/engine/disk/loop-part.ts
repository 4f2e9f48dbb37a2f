/** Parts of a disk as block devices of their own, whatever the disk's partition table says. */
import type { Partition } from './rules/tables/partitions.ts'
import type { Range } from './rules/extents.ts'
import type { Shell } from '../../kit/host/shell.ts'
import type { Device } from './device.ts'
import { probeContents } from './disk-contents.ts'
import { createHeldShell } from './held-shell.ts'
import { startKeeper } from './keepers.ts'
import type { FlashedDisk } from './volumes.ts'

/** A disk that we hold. */
type HeldDisk = Pick<Device, 'node' | 'fd' | 'sectorBytes'>

/**
 * Has the device detached as soon as nobody has it open any more, and holds it open itself until its
 * input ends: so that it does not outlive us nor the tool that works on it, even when we are killed.
 */
const KEEPER = `
trap '' PIPE HUP INT TERM
node=$(losetup --find --show "$@") || exit
case " $* " in *' --read-only '*) exec 9<"$node" ;; *) exec 9<>"$node" ;; esac
losetup --detach "$node"
echo "$node"
exec cat >/dev/null
`

/**
 * Attaches a part of the disk as a loop device until the result is disposed of. The disk stays held
 * for as long. Rejects with a Fault where `losetup` fails.
 */
export async function openLoopPart(
  shell: Shell,
  { node: disk, fd, sectorBytes }: HeldDisk,
  { offset, bytes }: Range,
  access: 'read' | 'write' = 'write',
) {
  const part = [`--sector-size=${sectorBytes}`, `--offset=${offset}`, `--sizelimit=${bytes}`]
  const flags = access === 'read' ? ['--read-only', ...part] : part
  const argv = ['/bin/sh', '-c', KEEPER, 'keeper', ...flags, disk]
  const words = { what: 'loop device', tool: 'losetup' }
  const keeper = await startKeeper(shell, { argv, held: [fd], ...words })
  return {
    /** `/dev/loopN`. */
    node: keeper.line,
    /** Runs tools that keep the disk held for as long as they live. */
    held: createHeldShell(shell, [fd]),
    [Symbol.asyncDispose]: keeper[Symbol.asyncDispose],
  }
}

/**
 * Attaches partitions as volumes, in their order, while the disk's own table is not written yet;
 * they stay until the result is disposed of.
 */
export async function openPartVolumes(
  shell: Shell,
  disk: HeldDisk,
  partitions: readonly Partition[],
): Promise<FlashedDisk> {
  await using undo = new AsyncDisposableStack()
  const volumes = []
  for (const partition of partitions) {
    const { node } = undo.use(await openLoopPart(shell, disk, partition))
    const contents = await probeContents(shell, node)
    const { uuid: partuuid, name: partlabel, bytes: sizeBytes } = partition
    const named = { node, kind: 'part', name: `partition ${partition.number}` } as const
    volumes.push({ ...named, sizeBytes, contents: { ...contents, partuuid, partlabel } })
  }
  const held = undo.move()
  return { volumes, refused: new Map(), [Symbol.asyncDispose]: () => held.disposeAsync() }
}
