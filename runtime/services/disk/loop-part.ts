/** Parts of a disk as block devices of their own, whatever the disk's partition table says. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Fault } from '../../core/foundation/fault.ts'
import type { Partition } from '../../core/disk/partitions.ts'
import type { Range } from '../../core/image/extents.ts'
import type { Shell } from '../host/shell.ts'
import type { Device } from './device.ts'
import { probeContents } from './disk-contents.ts'
import { createHeldShell, type HeldShell } from './held-shell.ts'
import type { FlashedDisk } from './volumes.ts'

/** A disk that we hold. */
type HeldDisk = Pick<Device, 'node' | 'fd' | 'sectorBytes'>

interface LoopPart extends AsyncDisposable {
  /** `/dev/loopN`. */
  readonly node: string
  /** Runs tools that keep the disk held for as long as they live. */
  readonly held: HeldShell
}

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

/** The disk stays held for as long as its part is attached. */
export async function openLoopPart(
  shell: Shell,
  { node: disk, fd, sectorBytes }: HeldDisk,
  { offset, bytes }: Range,
  access: 'read' | 'write' = 'write',
): Promise<LoopPart> {
  const part = [`--sector-size=${sectorBytes}`, `--offset=${offset}`, `--sizelimit=${bytes}`]
  const flags = access === 'read' ? ['--read-only', ...part] : part
  // In a session of its own, which no Ctrl-C reaches.
  const argv = ['setsid', '/bin/sh', '-c', KEEPER, 'keeper', ...flags, disk]
  const child = shell.pipe(argv, [fd])
  return {
    node: await readNode(child),
    held: createHeldShell(shell, [fd]),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.stdin.end()
      await gone
    },
  }
}

/** Partitions as volumes, in their order, while the disk's own table is not written yet. */
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
    const kind = 'part' as const
    volumes.push({ node, kind, sizeBytes, contents: { ...contents, partuuid, partlabel } })
  }
  const held = undo.move()
  return { volumes, refused: new Map(), [Symbol.asyncDispose]: () => held.disposeAsync() }
}

async function readNode(child: ChildProcessWithoutNullStreams) {
  const { stdin, stdout, stderr } = child
  const output: Buffer[] = []
  stderr.on('data', (chunk: Buffer) => output.push(chunk))
  // One that cannot start says why by this event alone.
  child.once('error', ({ message }) => output.push(Buffer.from(message)))
  // A child that has ended shows it by the end of its output.
  stdin.on('error', () => undefined)
  for await (const node of createInterface({ input: stdout })) return node
  const words = Buffer.concat(output).toString().trim() || 'losetup ended'
  throw new Fault('tool-failed', `no loop device: ${words}`)
}
