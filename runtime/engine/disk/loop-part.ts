/** Parts of a disk as block devices of their own, whatever the disk's partition table says. */
import type { Partition } from './rules/partition-tables.ts'
import type { Range } from './rules/extents.ts'
import { type Shell, needTools, type Finished } from '#kit/host/shell.ts'
import type { Device } from './device.ts'
import { probeContents } from './disks.ts'
import type { FlashedDisk } from './volumes.ts'
import { addAbortListener, once } from 'node:events'
import { text } from 'node:stream/consumers'
import { Fault } from '#kit/foundation/fault.ts'
import { createInterface } from 'node:readline'

type HeldDisk = Pick<Device, 'node' | 'fd' | 'sectorBytes'>

/** Holds the device until its input ends, and has it detached then, even when we are killed. */
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

// Runs tools that inherit open files, so that a disk stays held until the last of them has ended.

export type HeldShell = ReturnType<typeof createHeldShell>

function createHeldShell(shell: Shell, held: readonly number[]) {
  async function run(argv: readonly string[], signal: AbortSignal): Promise<Finished> {
    signal.throwIfAborted()
    await needTools(shell, argv.slice(0, 1))
    const child = shell.pipe(argv, held)
    using _ = addAbortListener(signal, () => void child.kill('SIGTERM'))
    // A tool may be gone before its input ends.
    child.stdin.on('error', () => undefined)
    child.stdin.end()
    const words = Promise.all([text(child.stdout), text(child.stderr)])
    // The tool ends before a failed pipe is reported.
    words.catch(() => undefined)
    await once(child, 'close')
    const [stdout, stderr] = await words
    return { exitCode: child.exitCode ?? 1, stdout, stderr }
  }
  return {
    /** An exit code that is not in `right` is a Fault `tool-failed` with the tool's words. */
    async require(
      argv: readonly string[],
      { signal, right = [0] }: { readonly signal: AbortSignal; readonly right?: readonly number[] },
    ): Promise<void> {
      const { exitCode, stdout, stderr } = await run(argv, signal)
      signal.throwIfAborted()
      if (right.includes(exitCode)) return
      const words = stderr.trim() || stdout.trim() || `exit code ${exitCode}`
      throw new Fault('tool-failed', `${argv[0]}: ${words}`)
    },
  }
}

/** Children that hold something of the system for us, and let go of it when their input ends, as it does with us. */
interface KeeperOrder {
  readonly argv: readonly string[]
  /** Open files that it inherits. */
  readonly held?: readonly number[]
  /** What is missing where it fails; `tool` says why. */
  readonly what: string
  readonly tool: string
}

interface Keeper extends AsyncDisposable {
  readonly pid: number
  /** Its first line; behind it, it may print what it reads. */
  readonly line: string
}

/** In its own session, out of Ctrl-C's reach. A Fault `tool-failed` if it ends without a line. */
export async function startKeeper(
  shell: Shell,
  { argv, held, what, tool }: KeeperOrder,
): Promise<Keeper> {
  const child = shell.pipe(['setsid', ...argv], held)
  const { stdin, stdout, stderr, pid } = child
  const output: Buffer[] = []
  const closed = once(child, 'close').catch(() => undefined)
  stderr.on('data', (chunk: Buffer) => output.push(chunk))
  // A child that cannot start says why only in this event.
  child.once('error', ({ message }) => output.push(Buffer.from(message)))
  // The end of its output shows that a child has ended; a broken pipe would repeat it.
  stdin.on('error', () => undefined)
  stdin.write('\n')
  for await (const line of createInterface({ input: stdout })) {
    if (pid === undefined) break
    return {
      pid,
      line,
      async [Symbol.asyncDispose]() {
        if (child.exitCode !== null || child.signalCode !== null) return
        const gone = once(child, 'exit')
        stdin.end()
        await gone
      },
    }
  }
  // Only now its output is complete.
  await closed
  const words = Buffer.concat(output).toString().trim() || `${tool} ended`
  throw new Fault('tool-failed', `no ${what}: ${words}`)
}
