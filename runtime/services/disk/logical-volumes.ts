/** Switches on the LVM volume groups of one disk, that disk alone in LVM's sight, and off again. */
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../core/foundation/fault.ts'
import {
  decideGroups,
  parsePhysicalVolumes,
  PVS_COLUMNS,
  type GroupDecision,
  type PhysicalVolume,
} from '../../core/disk/volume-group.ts'
import { PHYSICAL_VOLUME } from '../../core/disk/volume.ts'
import type { Shell } from '../host/shell.ts'

interface ActiveGroups extends AsyncDisposable {
  /** What was not switched on, by the node of its physical volume, and why. */
  readonly refused: ReadonlyMap<string, string>
}

export interface LogicalVolumes {
  /** `nodes`: the physical volumes on the disk; disposing switches off what this call switched on. */
  activate(nodes: readonly string[]): Promise<ActiveGroups>
}

/** With `--devices` LVM neither looks at another device nor writes its devices file. */
const only = (nodes: readonly string[]) => nodes.flatMap((node) => ['--devices', node])

const TRIES = 5
const PAUSE_MS = 200

export function createLogicalVolumes({ shell }: { readonly shell: Shell }): LogicalVolumes {
  async function list(nodes: readonly string[]): Promise<readonly PhysicalVolume[]> {
    if (nodes.length === 0) return []
    const argv = ['pvs', '--reportformat', 'json', '--options', PVS_COLUMNS, ...only(nodes)]
    const rows = parsePhysicalVolumes(await shell.require(argv))
    if (!rows.ok) throw new Fault('tool-failed', 'pvs gave an answer that cannot be read')
    return rows.value
  }

  /** Asked of blkid, since LVM hides one of two physical volumes with the same identity. */
  async function listElsewhere(nodes: readonly string[]): Promise<readonly string[]> {
    const found = await shell.run([
      'blkid',
      '--cache-file=/dev/null',
      '--output=device',
      `--match-token=TYPE=${PHYSICAL_VOLUME}`,
    ])
    return found.stdout.split('\n').filter((node) => node !== '' && !nodes.includes(node))
  }

  const change = (state: 'y' | 'n', { name, nodes }: GroupDecision) =>
    shell.run(['vgchange', '--activate', state, ...only(nodes), name])

  async function deactivate(group: GroupDecision) {
    for (let tries = 1; ; tries += 1) {
      const { exitCode, stderr } = await change('n', group)
      if (exitCode === 0) return
      if (tries === TRIES) {
        throw new Fault(
          'tool-failed',
          `cannot switch volume group ${group.name} off again: ${stderr.trim()}`,
        )
      }
      // A look by udev may hold a volume for a moment.
      await pause(PAUSE_MS * tries)
    }
  }

  return {
    async activate(nodes) {
      if (nodes.length === 0) return nothing(new Map())
      if (!(await shell.has('vgchange'))) {
        return nothing(
          new Map(nodes.map((node) => [node, 'lvm2 is not installed to look into it'])),
        )
      }
      await using undo = new AsyncDisposableStack()
      const groups = decideGroups(await list(nodes), await list(await listElsewhere(nodes)))
      const refused = new Map<string, string>()
      for (const group of groups) {
        if (group.refusal !== null) {
          for (const node of group.nodes) refused.set(node, group.refusal)
          continue
        }
        undo.defer(() => deactivate(group))
        const { exitCode, stderr } = await change('y', group)
        if (exitCode === 0) continue
        // A damaged group is an answer: another volume may be the one.
        for (const node of group.nodes)
          refused.set(node, `LVM cannot activate it: ${stderr.trim()}`)
      }
      const held = undo.move()
      return { refused, [Symbol.asyncDispose]: () => held.disposeAsync() }
    },
  }
}

const nothing = (refused: ReadonlyMap<string, string>): ActiveGroups => ({
  refused,
  [Symbol.asyncDispose]: async () => undefined,
})
