/** Opens partitions of a disk whose table is not written yet: a loop device over the part of each. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Fault } from '../../core/foundation/fault.ts'
import type { Partition } from '../../core/disk/partitions.ts'
import type { Device } from './device.ts'
import { probeContents } from './disk-contents.ts'
import type { Shell } from '../host/shell.ts'
import type { FlashedDisk } from './volumes.ts'

/**
 * Arguments: the sector size, then `offset:bytes` of each partition. It detaches them when its input
 * ends, which it also does when we are killed (nobody may read its output then); one that is still
 * mounted goes with its mount.
 */
const SCRIPT = `
disk=$0; sector=$1; shift; devices=
trap '' PIPE
trap 'for device in $devices; do losetup --detach "$device"; done' EXIT
for part; do
  device=$(losetup --find --show --sector-size "$sector" --offset "\${part%:*}" --sizelimit "\${part#*:}" "$disk") || exit
  devices="$devices $device"; echo "$device"
done
cat >/dev/null
`

/** The volumes of the partitions, in their order. They are detached when this is disposed of. */
export async function openPartitionLoops(
  shell: Shell,
  { node, sectorBytes }: Pick<Device, 'node' | 'sectorBytes'>,
  partitions: readonly Partition[],
): Promise<FlashedDisk> {
  const parts = partitions.map(({ offset, bytes }) => `${offset}:${bytes}`)
  // In a session of its own, which no Ctrl-C reaches.
  const child = shell.pipe(['setsid', 'sh', '-c', SCRIPT, node, String(sectorBytes), ...parts])
  await using undo = new AsyncDisposableStack()
  undo.defer(() => end(child))
  const nodes = await readNodes(child, partitions.length)
  const volumes = []
  for (const [at, partition] of partitions.entries()) {
    const loop = nodes[at] ?? ''
    const contents = await probeContents(shell, loop)
    const { uuid: partuuid, name: partlabel, bytes: sizeBytes } = partition
    const kind = 'part' as const
    volumes.push({ node: loop, kind, sizeBytes, contents: { ...contents, partuuid, partlabel } })
  }
  const held = undo.move()
  return { volumes, refused: new Map(), [Symbol.asyncDispose]: () => held.disposeAsync() }
}

async function readNodes(
  { stdin, stdout, stderr }: ChildProcessWithoutNullStreams,
  count: number,
): Promise<readonly string[]> {
  const output: Buffer[] = []
  stderr.on('data', (chunk: Buffer) => output.push(chunk))
  // A child that has ended shows it by the end of its output.
  stdin.on('error', () => undefined)
  const nodes: string[] = []
  for await (const line of createInterface({ input: stdout })) {
    nodes.push(line)
    if (nodes.length === count) return nodes
  }
  const words = Buffer.concat(output).toString().trim() || 'losetup ended'
  throw new Fault('tool-failed', `no loop device: ${words}`)
}

async function end(child: ChildProcessWithoutNullStreams) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.stdin.end()
  await gone
}
