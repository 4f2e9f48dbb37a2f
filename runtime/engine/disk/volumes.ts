/** Lists the volumes of a disk that was just written, logical ones too, once the kernel shows them. */
import { access } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '#kit/foundation/fault.ts'
import type { Shell } from '#kit/host/shell.ts'
import { probeContents, readLsblk, settleDevices } from './disks.ts'
import { type FilledVolume, listVolumes, PHYSICAL_VOLUME } from './rules/lsblk.ts'
import {
  decideGroups,
  type GroupDecision,
  parsePhysicalVolumes,
  type PhysicalVolume,
  PVS_COLUMNS,
} from './rules/pvs.ts'

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

const TRIES = 5
const RELEASE_PAUSE_MS = 200

/** `nodes`: the physical volumes on the disk. Disposing deactivates what this call activated. */
async function activateGroups(shell: Shell, nodes: readonly string[]) {
  const refused = new Map<string, string>()
  await using undo = new AsyncDisposableStack()
  if (nodes.length > 0 && !(await shell.has('vgchange'))) {
    for (const node of nodes) refused.set(node, 'lvm2 is not installed to look into it')
  } else if (nodes.length > 0) {
    const others = await listElsewhere(shell, nodes)
    const groups = decideGroups(await listPhysical(shell, nodes), await listPhysical(shell, others))
    for (const group of groups) {
      const refusal = group.refusal ?? (await activate(shell, group, undo))
      if (refusal !== null) for (const node of group.nodes) refused.set(node, refusal)
    }
  }
  const held = undo.move()
  return { refused, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

/** With `--devices` LVM neither looks at another device nor writes its devices file. */
const only = (nodes: readonly string[]) => nodes.flatMap((node) => ['--devices', node])

async function listPhysical(
  shell: Shell,
  nodes: readonly string[],
): Promise<readonly PhysicalVolume[]> {
  if (nodes.length === 0) return []
  const argv = ['pvs', '--reportformat', 'json', '--options', PVS_COLUMNS, ...only(nodes)]
  const rows = parsePhysicalVolumes(await shell.require(argv))
  if (!rows.ok) throw new Fault('tool-failed', 'pvs gave an answer that cannot be read')
  return rows.value
}

/** By blkid, as LVM hides one of two physical volumes with the same identity. */
async function listElsewhere(shell: Shell, nodes: readonly string[]): Promise<readonly string[]> {
  const found = await shell.run([
    'blkid',
    '--cache-file=/dev/null',
    '--output=device',
    `--match-token=TYPE=${PHYSICAL_VOLUME}`,
  ])
  return found.stdout.split('\n').filter((node) => node !== '' && !nodes.includes(node))
}

const change = (shell: Shell, state: 'y' | 'n', { name, nodes }: GroupDecision) =>
  shell.run(['vgchange', '--activate', state, ...only(nodes), name])

/** Null: it is active. A damaged group does not end the search. */
async function activate(shell: Shell, group: GroupDecision, undo: AsyncDisposableStack) {
  undo.defer(() => deactivate(shell, group))
  const { exitCode, stderr } = await change(shell, 'y', group)
  return exitCode === 0 ? null : `LVM cannot activate it: ${stderr.trim()}`
}

async function deactivate(shell: Shell, group: GroupDecision) {
  for (let tries = 1; ; tries += 1) {
    const { exitCode, stderr } = await change(shell, 'n', group)
    if (exitCode === 0) return
    if (tries === TRIES) {
      const reason = `cannot deactivate volume group ${group.name}: ${stderr.trim()}`
      throw new Fault('tool-failed', reason)
    }
    // udev may hold a volume for a moment.
    await pause(RELEASE_PAUSE_MS * tries)
  }
}
