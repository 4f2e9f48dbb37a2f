/** Parts of a disk as block devices of their own, whatever the disk's partition table says. */
import type { Partition } from './rules/tables/partitions.ts'
import type { Range } from './rules/extents.ts'
import type { Shell } from '#kit/host/shell.ts'
import type { Device } from './device.ts'
import { probeContents } from './disk-contents.ts'
import { createHeldShell } from './held-shell.ts'
import { startKeeper } from './keepers.ts'
import type { FlashedDisk } from './volumes.ts'

type HeldDisk = Pick<Device, 'node' | 'fd' | 'sectorBytes'>

/**
 * Holds the device open until its input ends, and has it detached then, even when we are killed.
 */
const KEEPER = `
trap '' PIPE HUP INT TERM
node=$(losetup --find --show "$@") || exit
case " $* " in *' --read-only '*) exec 9<"$node" ;; *) exec 9<>"$node" ;; esac
losetup --detach "$node"
echo "$node"
exec cat >/dev/null
`

/** The disk stays held, too. Rejects with a Fault where `losetup` fails. */
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
    /** Its tools keep the disk held as long as they live. */
    held: createHeldShell(shell, [fd]),
    [Symbol.asyncDispose]: keeper[Symbol.asyncDispose],
  }
}

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
