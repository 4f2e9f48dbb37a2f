/** Activates the LVM volume groups of one disk, with LVM restricted to that disk, and deactivates them again. */
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '#kit/foundation/fault.ts'
import {
  decideGroups,
  parsePhysicalVolumes,
  PVS_COLUMNS,
  type GroupDecision,
  type PhysicalVolume,
  PHYSICAL_VOLUME,
} from './rules/volume.ts'
import type { Shell } from '#kit/host/shell.ts'

const TRIES = 5
const PAUSE_MS = 200

/** `nodes`: the physical volumes on the disk. Disposing deactivates what this call activated. */
export async function activateGroups(shell: Shell, nodes: readonly string[]) {
  const refused = new Map<string, string>()
  await using undo = new AsyncDisposableStack()
  if (nodes.length > 0 && !(await shell.has('vgchange'))) {
    for (const node of nodes) refused.set(node, 'lvm2 is not installed to look into it')
  } else if (nodes.length > 0) {
    const others = await listElsewhere(shell, nodes)
    const groups = decideGroups(await list(shell, nodes), await list(shell, others))
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

async function list(shell: Shell, nodes: readonly string[]): Promise<readonly PhysicalVolume[]> {
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
    await pause(PAUSE_MS * tries)
  }
}
